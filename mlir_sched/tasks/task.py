"""A task: one distinct dispatch of the model as a stand-alone program, with what tuning needs to know about it."""

from dataclasses import dataclass, field
from typing import TypeAlias

from mlir_sched.payload import Dispatch, TensorSpec

Number: TypeAlias = int | float
"""A scalar that a program passes to a dispatch."""


@dataclass(frozen=True)
class Task:
    """One distinct dispatch.

    Attributes:
        key: Structural hash of the dispatch's code, without its name, together with target, compiler version, compiler
            flags, ``constants``, ``reuse_bytes`` and ``numbers``: measurements of tasks with equal keys are
            interchangeable.
        name: The dispatch's symbol in the model, e.g. ``main_dispatch_0_matmul_1024x1024x1024_f32``.
        weight: Calls of the dispatch in one run of the model, >= 1.
        source: The task's stand-alone program at IREE's executable-sources phase, as MLIR text. Its entry is
            ``task``; it takes the inputs, then one buffer per output, into which it writes the results.
        inputs: Tensors that the dispatch reads, then the numbers that differ between its calls (``by_value``).
        outputs: Tensors that the dispatch writes; a tensor that is updated in place is also an input.
        dispatch: The dispatch's ops; None when it cannot be tuned.
        not_tunable: Why the dispatch cannot be tuned; empty when it can.
        only_copies: Whether it cannot be tuned as it computes nothing: it copies, or puts tensors together.
        flags: The compiler flags of the task's program (target flags first), by :func:`.program_flags.task_flags`.
        constants: Positions of the inputs that are constants of the model, such as weights, in all calls. Empty where
            the constants of the whole model stay in the cache of a core.
        reuse_bytes: Bytes of constants that the model reads between two calls with the same constants
            (``tasks/worker/constants.py``); 0 without ``constants``.
        integer_ranges: Smallest and largest integer that each input may hold, by position; None for an input that may
            hold any integer or holds none. Indices have to stay inside the tables that they read.
        may_not_run: Whether a run of the model may not call the dispatch at all, as all of its calls depend on values
            that are computed at run time.
        numbers: The combinations of values that the model passes for the numbers among the inputs, in their order;
            empty where there are no such numbers.
        captured: File with the inputs that a run of the model passes to the dispatch (``runner/checks/captured.py``);
            empty where none were recorded. Tasks that differ in it are equal.
    """

    key: str
    name: str
    weight: int
    source: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    dispatch: Dispatch | None
    not_tunable: str
    flags: tuple[str, ...]
    constants: tuple[int, ...] = ()
    reuse_bytes: int = 0
    may_not_run: bool = False
    integer_ranges: tuple[tuple[int, int] | None, ...] = ()
    numbers: tuple[tuple[Number, ...], ...] = ()
    captured: str = field(default="", compare=False)
    only_copies: bool = False

    @property
    def footprint_bytes(self) -> int:
        """Bytes of its inputs and outputs."""
        return sum(tensor.bytes for tensor in (*self.inputs, *self.outputs))
