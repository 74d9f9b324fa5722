"""A compiled program as data, ready to be run."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlir_sched.compiler.chain import TASK
from mlir_sched.payload import TensorSpec
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.parameters import ParameterFile


@dataclass(frozen=True)
class StateFunction:
    """A function that changes the state of a program, or whose results show it.

    Attributes:
        name: Its name in the module.
        inputs, outputs: Tensors it takes and makes.
        integer_ranges: Range of the values of each integer input, see :class:`~mlir_sched.runner.checks.check.Check`.
    """

    name: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    integer_ranges: tuple[tuple[int, int] | None, ...] = ()


@dataclass(frozen=True)
class ProgramState:
    """What has to be called around a function whose calls depend on each other.

    Attributes:
        functions: The functions that share state with it; a check names those that are called before.
        shown_by: Names of the functions whose results, in calls after it, show the state that it leaves; empty where
            it changes none.
    """

    functions: tuple[StateFunction, ...]
    shown_by: tuple[str, ...] = ()

    def function(self, name: str) -> StateFunction:
        """Return a function by its name."""
        return next(function for function in self.functions if function.name == name)

    @property
    def shown(self) -> tuple[TensorSpec, ...]:
        """The tensors that the functions in ``shown_by`` make, in order."""
        return tuple(spec for name in self.shown_by for spec in self.function(name).outputs)


@dataclass(frozen=True)
class Program:
    """One compiled program and how to call it.

    Attributes:
        entry: Name of the function to call, e.g. ``task``.
        inputs: Tensors it takes, in order.
        outputs: Tensors it makes, in order.
        writes_into_arguments: True for task programs, which take one destination buffer per output after the
            inputs; False for whole models, which return new buffers.
        constants: Positions of inputs whose elements are not in the caches when a user's program is called: between
            two calls it reads ``reuse_bytes`` bytes of other constants. Timing takes copies of these inputs in turns.
        reuse_bytes: Bytes; 0 when all inputs are as warm as the call before leaves them.
        local_sync: Whether it runs in the calling thread (``local-sync``) even in a runner of several threads.
        state: What is called around it, each time in a context of its own; None for a function without state.
    """

    vmfb: bytes
    entry: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    writes_into_arguments: bool
    parameters: tuple[ParameterFile, ...] = ()
    constants: tuple[int, ...] = ()
    reuse_bytes: int = 0
    local_sync: bool = False
    state: ProgramState | None = None

    def with_code(self, vmfb: bytes) -> Program:
        """Return a program that is called as this one, with other code."""
        return replace(self, vmfb=vmfb)


def program_of_task(task: Task, vmfb: bytes) -> Program:
    """Return the compiled code of a task as a program to run."""
    return Program(
        vmfb,
        TASK,
        task.inputs,
        task.outputs,
        writes_into_arguments=True,
        constants=task.constants,
        reuse_bytes=task.reuse_bytes,
    )
