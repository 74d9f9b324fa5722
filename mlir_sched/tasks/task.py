"""A task: one distinct dispatch of the model as a program of its own, and what tuning needs to know of it."""

from __future__ import annotations

from dataclasses import dataclass

from mlir_sched.payload import Dispatch, TensorSpec


@dataclass(frozen=True)
class Task:
    """One distinct dispatch.

    Attributes:
        key: Structural hash of the dispatch's code, without its name, together with target, compiler version and
            compiler flags: equal keys mean that a measurement of one is a measurement of the other.
        name: The dispatch's symbol in the model, e.g. ``main_dispatch_0_matmul_1024x1024x1024_f32``.
        weight: How often one run of the model calls it, >= 1.
        source: The task's stand-alone program at IREE's executable-sources phase, as MLIR text. Its entry is
            ``task``; it takes the inputs, then one buffer per output, into which it writes the results.
        inputs: Tensors the dispatch reads.
        outputs: Tensors it makes; one that is updated in place is also an input.
        dispatch: Its ops; None when it cannot be tuned.
        not_tunable: Why it cannot be tuned; empty when it can.
        flags: The compiler flags its program is compiled with (target flags first).
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
