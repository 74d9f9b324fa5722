"""Sequences of calls of a program with state: from a fresh context, up to calls that show the state that is left."""

from collections.abc import Callable, Iterable
from typing import Any

from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind, Integers
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.program import ProgramState, StateFunction
from mlir_sched.runner.worker.device import Device, LoadedProgram
from mlir_sched.tensors.element_types import Array

MOST_CALLS = 8
"""Calls of a program that changes its state from one fresh context: as the state grows (a cache that every call
appends to), more calls may be more than a user makes, or than the state has room for."""
_SEED = 1000
"""Seed of the inputs of the first function; checks have smaller ones."""

Results = list[tuple[Any, TensorSpec]]
"""Output buffer views, each with its shape and type."""


class Sequences:
    """The calls around a function whose calls depend on each other.

    A function takes the same inputs in the same place of every sequence, and others in its next call.
    """

    def __init__(self, state: ProgramState) -> None:
        self.state = state
        self._inputs: dict[tuple[str, int], tuple[Array, ...]] = {}

    def begun(self, loaded: LoadedProgram, device: Device, check: Check) -> LoadedProgram:
        """Return a program in a fresh context, in which the functions were called that a check names."""
        fresh = loaded.fresh()
        for position, name in enumerate(check.before):
            self._call(fresh, device, name, position)
        return fresh

    def shown(self, loaded: LoadedProgram, device: Device) -> Results:
        """Return the results of calls that show the state."""
        return [result for name in self.state.shown_by for result in kept(device, self._call(loaded, device, name, 0))]

    def _call(self, loaded: LoadedProgram, device: Device, name: str, position: int) -> Results:
        function = self.state.function(name)
        arrays = zip(self._arrays(function, position % 2), function.inputs, strict=True)
        buffers = [device.buffer(array, spec) for array, spec in arrays]
        return list(zip(loaded.call_other(function, buffers), function.outputs, strict=True))

    def _arrays(self, function: StateFunction, turn: int) -> tuple[Array, ...]:
        """Return the inputs of every other call of a function."""
        if (function.name, turn) not in self._inputs:
            seed = _SEED + 2 * self.state.functions.index(function) + turn
            ranges = function.integer_ranges or None
            integers = Integers.WHOLE if ranges else Integers.INDICES
            check = Check(InputKind.RANDOM, seed, bound=1, integers=integers, integer_ranges=ranges, gain=1.0)
            self._inputs[function.name, turn] = make_inputs(function.inputs, check)
        return self._inputs[function.name, turn]


class RestartedCalls:
    """Calls of a program that changes its state: after :data:`MOST_CALLS`, the program begins anew.

    Args:
        begin: Returns a function that calls the program a given number of times, in the state at the beginning.
    """

    def __init__(self, begin: Callable[[], Callable[[int], None]]) -> None:
        self._begin = begin
        self.restart()

    def restart(self) -> None:
        """Begin anew."""
        self._run, self._left = self._begin(), MOST_CALLS

    def __call__(self, calls: int) -> None:
        """Call the program a number of times."""
        while calls > 0:
            if self._left == 0:
                self.restart()
            now = min(calls, self._left)
            self._run(now)
            self._left -= now
            calls -= now


def kept(device: Device, results: Iterable[tuple[Any, TensorSpec]]) -> Results:
    """Return results in buffers of their own: a later call may change those that are a part of the state."""
    return [
        (device.buffer(device.read(view, spec, keep=True), spec) if view.byte_length == spec.bytes else view, spec)
        for view, spec in results
    ]
