"""The workspace that the programs of one task share: input and output buffers, and the references."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mlir_sched.compiler.chain import stride_bytes
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, Checks, InputKind
from mlir_sched.runner.checks.inputs import PROBES, alternatives, make_inputs, moved_by_rounding, other_draws
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import LONG_CALL_S
from mlir_sched.runner.worker.comparison import (
    MOST_MOVED,
    Movements,
    compare,
    deviations,
    holds_poison,
    poison_bits,
    poisoned,
)
from mlir_sched.runner.worker.device import Device, LoadedProgram
from mlir_sched.runner.worker.kept_references import KnownResults
from mlir_sched.runner.worker.references import most_usable, telling, why_unverifiable
from mlir_sched.runner.worker.sequences import RestartedCalls, Sequences, kept
from mlir_sched.tensors.element_types import Array, is_integer
from mlir_sched.tensors.packing import to_words

MOST_COPIES = 1024
"""Most copies of a task's constants. Constants of a few kB stay in the caches then; reading them takes little time."""


class UnverifiableResults(RuntimeError):  # noqa: N818 - a property of the program, not an error of the tool
    """Wrong results could not be told from right ones; the message says why."""


@dataclass
class Case:
    """One check made concrete: its inputs and the right results.

    Attributes:
        check: The check as it is made: the wanted one, or an alternative where its inputs give no usable numbers.
        wanted: Kind of the wanted check.
        references: The right results: those of the baseline, unless the user gives them.
        movements: How far rounding of the inputs moves the results, as far as it was asked; None before.
    """

    check: Check
    wanted: InputKind
    inputs: tuple[Array, ...]
    results: list[Array] = field(default_factory=list)
    references: list[Array] = field(default_factory=list)
    movements: Movements | None = None

    def take(self, results: Sequence[Array]) -> None:
        """Take the baseline's results, which are right unless the user gives others."""
        self.results = list(results)
        given = self.check.given.reference if self.check.given else ()
        self.references = [*(value.array for value in given), *self.results[len(given) :]]


@dataclass(frozen=True)
class _Far:
    """A result beyond its tolerance.

    Attributes:
        position: Its position among the outputs.
        tolerance: Its tolerance; 0 where equality is due.
        error: What is wrong if nothing explains this.
    """

    position: int
    tolerance: float
    deviations: Array
    error: str

    def is_within(self, movements: Movements) -> bool:
        """Say whether movements explain every element that is beyond the tolerance."""
        return bool((self.deviations <= np.maximum(self.tolerance, movements.bound(self.position))).all())


@dataclass(frozen=True)
class DeviceBuffers:
    """What a workspace holds on its device.

    Attributes:
        destinations: Buffers that programs write into.
        inputs: One list of input buffers per case.
        turns: Lists of input buffers that timed calls take in turns; empty until a program is timed.
        chain_turns: The same for calls of chains, whose buffers of constants hold a copy per dispatch.
    """

    device: Device
    destinations: list[Any]
    inputs: list[list[Any]]
    turns: list[list[Any]] = field(default_factory=list)
    chain_turns: list[list[Any]] = field(default_factory=list)


class Workspace:
    """Buffers of one device for programs that take the tensors of ``baseline``.

    The baseline has to give the same results twice in every check; after a check that takes :data:`LONG_CALL_S`, the
    other checks are not repeated. Inputs with results that are not finite, or all 0, are replaced by others
    (``inputs.alternatives``), and random inputs while all results are the same (``inputs.other_draws``).

    All programs run on the same buffers, so none is helped or hurt by where its memory happens to lie.

    A result beyond its tolerance is wrong, unless each element that is beyond is ill-conditioned: unless rounding of
    the inputs moves this very element of the baseline nearly as far (``comparison.py``).

    Nothing may be written behind the end of an input or a destination (``device.GUARD_BYTES``).

    Where the baseline is a whole program, candidates may change an input that the baseline overwrites or returns
    unchanged; such inputs are written anew before each check. IREE 3.13 computes in place on arguments that it should
    leave alone (iree-org/iree issue 16168).

    Args:
        checks: The checks; the references of each are computed here.
        on_call: Is told the seconds of every call whose results become references.
        silent: Whether the results may tell nothing: other inputs than those of the checks are not tried then.
        known: The baseline's results in these checks, by another process; None where they are not known.

    Attributes:
        check_s: Seconds of the longest check of the baseline.
        call_s: Rough seconds per call of the baseline; 0 until they are known, as a check says little of short calls.
        telling: Which checks tell wrong results from right ones, and which outputs none of them tells.

    Raises:
        RuntimeError: The baseline fails, leaves poison or does not reproduce its results.
        UnverifiableResults: Wrong results could not be told from those of the baseline.
    """

    def __init__(
        self,
        device: Device,
        baseline: Program,
        checks: Checks,
        on_call: Callable[[float], None] = lambda _: None,
        *,
        silent: bool = False,
        known: KnownResults | None = None,
    ) -> None:
        self._specs = baseline
        self._on_call = on_call
        self._outputs = (*baseline.outputs, *(baseline.state.shown if baseline.state else ()))
        self._sequences = Sequences(baseline.state) if baseline.state else None
        self._cases = [Case(check, check.kind, make_inputs(baseline.inputs, check)) for check in checks]
        self._buffers: DeviceBuffers | None = None
        self._overwritten = set[int](known.overwritten if known else ())
        self._called_s = 0.0
        self.open(device)
        loaded = device.load(baseline)
        for index in range(len(self._cases)):
            if known is None:
                self._choose_inputs(loaded, index)
            else:
                self._take(index, known)
        if (reason := self._why_unverifiable()) and not silent and self._draw_others(loaded):
            raise UnverifiableResults(f"its numbers cannot be verified: {reason}")
        self.check_s = self.call_s = 0.0
        order = tuple(dict.fromkeys((*self.telling.checks, *range(len(self._cases)))))
        for index in order if known is None else reversed(order):  # another check than the process that keeps results
            start = time.perf_counter()
            if error := self.verify(loaded, index, again=True):
                raise RuntimeError(f"the baseline does not reproduce its own result: {error}")
            self.check_s = max(self.check_s, time.perf_counter() - start)
            if self.check_s >= LONG_CALL_S:
                break
        if self._called_s >= LONG_CALL_S:
            self.call_s = self._called_s

    @property
    def checks(self) -> tuple[Check, ...]:
        """The checks as they are made: some with other inputs than were wanted."""
        return tuple(case.check for case in self._cases)

    @property
    def results(self) -> KnownResults:
        """The baseline's own results in all checks."""
        results = tuple(tuple(case.results) for case in self._cases)
        return KnownResults(self.checks, results, frozenset(self._overwritten))

    @property
    def bytes(self) -> int:
        """Size in bytes of the inputs and references, which stay while the workspace is closed."""
        return sum(array.nbytes for case in self._cases for array in (*case.inputs, *case.results))

    def on(self, device: Device) -> Workspace:
        """Return a workspace for the same checks, with the same references, and with buffers on another device."""
        other = copy(self)
        other.close()
        other.open(device)
        return other

    def open(self, device: Device) -> None:
        """Make the buffers on a device; nothing changes when the workspace is open already."""
        if self._buffers is not None:
            return
        written = self._specs.outputs if self._specs.writes_into_arguments else ()
        destinations = [device.buffer(poisoned(spec), spec) for spec in written]
        inputs = [
            [device.buffer(a, s) for a, s in zip(case.inputs, self._specs.inputs, strict=True)] for case in self._cases
        ]
        self._buffers = DeviceBuffers(device, destinations, inputs)

    def close(self) -> None:
        """Release the buffers; inputs and references stay."""
        self._buffers = None

    def verify(self, loaded: LoadedProgram, index: int, *, again: bool = False) -> str | None:
        """Run check ``index`` on a program and say what is wrong, or None.

        Args:
            again: Whether the program is the baseline, which has to give its own results once more.
        """
        case, device = self._cases[index], self._on_device.device
        results = self._results(loaded, index)
        message, far = self._written_behind(index), list[_Far]()
        for position, elements in self._changed_inputs(index).items():
            message = message or f"input {position} was overwritten in {elements} elements"
            self._restore_input(index, position)
        for position, (view, spec) in enumerate(results):
            if view.byte_length != spec.bytes:
                message = message or f"output {position} has {view.byte_length} bytes instead of {spec.bytes}"
            elif message is None:
                reference = (case.results if again else case.references)[position]
                actual = device.read(view, spec)
                tolerance = case.check.tolerance_for(spec, reference)
                if error := compare(reference, actual, spec, tolerance):
                    equal_due = tolerance == 0.0 or is_integer(spec)
                    far.append(_Far(position, 0.0 if equal_due else tolerance, deviations(reference, actual), error))
        # a returned buffer goes back to the pool, where a later call may find it
        self._poison((view, spec) for view, spec in results if view.byte_length == spec.bytes)
        for found in far:
            if message is None and not self._explains(index, found):
                message = f"{case.check.doubt and f'{case.check.doubt}; '}output {found.position}: {found.error}"
        return message and f"{case.check.kind} inputs{_after(case.check)}: {message}"

    def runner_of(self, loaded: LoadedProgram) -> Callable[[int], None]:
        """Return a function that calls the program a given number of times on the inputs for timing.

        A program with state is called in the state that the calls before the check leave. Where the program changes its
        state, what is returned are :class:`RestartedCalls`.
        """
        buffers, sequences, timed = self._on_device, self._sequences, self._timed
        if not buffers.turns:
            buffers.turns.extend(self._turns())
        if sequences is None:
            return loaded.bind(buffers.turns, buffers.destinations)

        def begin() -> Callable[[int], None]:
            begun = sequences.begun(loaded, buffers.device, self._cases[timed].check)
            return begun.bind(buffers.turns, buffers.destinations)

        return RestartedCalls(begin) if sequences.state.shown_by else begin()

    def warm_runner_of(self, loaded: LoadedProgram) -> Callable[[int], None]:
        """Return a function that calls the program a given number of times, always on the same inputs."""
        buffers = self._on_device
        return loaded.bind([buffers.inputs[self._timed]], buffers.destinations)

    def chain_runner_of(self, loaded: LoadedProgram, length: int) -> Callable[[int], None]:
        """Return a function that calls the program's chain a given number of times on the inputs for timing.

        Args:
            length: Dispatches of its chain, the same for all programs of this workspace.
        """
        buffers = self._on_device
        if not buffers.chain_turns:
            sets, repeated = -(-self._copies() // length), partial(self._repeated, length)
            buffers.chain_turns.extend(self._with_constants(repeated) for _ in range(sets))
        return loaded.bind(buffers.chain_turns, buffers.destinations, chained=True)

    def _turns(self) -> list[list[Any]]:
        """Return the inputs for timing, and copies of them with constants in other places of the memory."""
        copies = (self._with_constants(self._on_device.device.buffer) for _ in range(1, self._copies()))
        return [self._on_device.inputs[self._timed], *copies]

    def _copies(self) -> int:
        """Return how many copies of the constants timed calls read in turns, >= 1.

        There are as many as the memory has room for between two reads of the same constants in a user's program.
        """
        size = sum(self._specs.inputs[position].bytes for position in self._specs.constants)
        return max(1, min(MOST_COPIES, self._specs.reuse_bytes // size)) if size else 1

    def _with_constants(self, buffer: Callable[[Array, TensorSpec], Any]) -> list[Any]:
        """Return the inputs for timing with new buffers of constants, each made by a function."""
        copied = list(self._on_device.inputs[self._timed])
        for position in self._specs.constants:
            copied[position] = buffer(self._cases[self._timed].inputs[position], self._specs.inputs[position])
        return copied

    def _repeated(self, length: int, array: Array, spec: TensorSpec) -> Any:
        """Return a new buffer with a copy of a constant for every dispatch of a chain."""
        rows = np.zeros((length, stride_bytes(spec.bytes)), np.uint8)
        rows[:, : spec.bytes] = to_words(np.ascontiguousarray(array), spec).reshape(-1).view(np.uint8)
        return self._on_device.device.buffer(rows.reshape(-1), TensorSpec((rows.size,), "i8"))

    def timed_inputs(self) -> tuple[Array, ...]:
        """Return the inputs that programs are timed on: those that the user gives, or else random ones."""
        return self._cases[self._timed].inputs

    def _choose_inputs(self, loaded: LoadedProgram, index: int) -> None:
        """Compute the references of a case, on alternative inputs where they are not usable."""
        case = self._cases[index]

        def references_of(check: Check) -> list[Array]:
            if check is not case.check:
                self._replace_inputs(index, check)
            self._compute_references(loaded, index)
            return case.references

        most_usable(alternatives(case.check, self._specs.inputs, self._specs.outputs), references_of)

    def _take(self, index: int, known: KnownResults) -> None:
        """Take the references of a case, and its inputs, from what is known."""
        if known.checks[index] != self._cases[index].check:
            self._replace_inputs(index, known.checks[index])
        self._cases[index].take(known.results[index])

    def _why_unverifiable(self) -> str:
        """Return why wrong results could not be told from right ones, empty if they could; note which checks tell."""
        references = [case.references for case in self._cases]
        self.telling = telling(self._outputs, self.checks, references)
        return why_unverifiable(references, self.telling.constant)

    def _draw_others(self, loaded: LoadedProgram) -> bool:
        """Draw other random inputs until a wrong result can be told from a right one; say whether none can."""
        random = next((i for i, case in enumerate(self._cases) if case.wanted == InputKind.RANDOM), 0)
        for check in other_draws(self._cases[random].check):
            self._replace_inputs(random, check)
            self._compute_references(loaded, random)
            if not self._why_unverifiable():
                return False
        return True

    def _explains(self, index: int, far: _Far) -> bool:
        """Say whether rounding of the inputs explains every element that is beyond its tolerance.

        The baseline is called on rounded inputs as few times as show that, and at most :data:`PROBES` times.
        """
        if far.tolerance == 0.0 or bool((far.deviations > MOST_MOVED).any()):
            return False
        case, program = self._cases[index], None
        case.movements = movements = case.movements or Movements(case.results)
        while not far.is_within(movements):
            if movements.probes == PROBES:
                return False
            program = program or self._on_device.device.load(self._specs)
            movements.add(self._moved(index, program, movements.probes))
        return True

    def _moved(self, index: int, program: LoadedProgram, number: int) -> list[Array]:
        """Return the results of the baseline on inputs of a case that are moved by rounding."""
        device = self._on_device.device
        inputs = zip(self._cases[index].inputs, self._specs.inputs, strict=True)
        moved = [device.buffer(moved_by_rounding(array, number), spec) for array, spec in inputs]
        results = self._run(program, self._cases[index].check, moved)
        found = [device.read(view, spec, keep=True) for view, spec in results]
        self._poison(results)
        return found

    def _replace_inputs(self, index: int, check: Check) -> None:
        case = self._cases[index]
        case.check, case.inputs = check, make_inputs(self._specs.inputs, check)
        for position in range(len(case.inputs)):
            self._restore_input(index, position)

    def _compute_references(self, loaded: LoadedProgram, index: int) -> None:
        case, device = self._cases[index], self._on_device.device
        results = self._results(loaded, index)
        self._on_call(self._called_s)
        case.take([device.read(view, spec, keep=True) for view, spec in results])
        if not self._specs.writes_into_arguments:
            self._poison(results)
            self._overwritten |= self._changed_inputs(index).keys()
        if any(holds_poison(r, s) for r, s in zip(case.results, self._outputs, strict=True)):
            raise RuntimeError(
                "the baseline leaves elements of its output unwritten, or computes them from memory that is not its own"
            )

    @property
    def _timed(self) -> int:
        """Number of the case that programs are timed on: what the user gives, else random inputs."""
        kinds = [case.wanted for case in self._cases]
        return next((kinds.index(kind) for kind in (InputKind.GIVEN, InputKind.RANDOM) if kind in kinds), 0)

    @property
    def _on_device(self) -> DeviceBuffers:
        assert self._buffers is not None
        return self._buffers

    def _results(self, loaded: LoadedProgram, index: int) -> list[tuple[Any, TensorSpec]]:
        for position in self._overwritten:
            self._restore_input(index, position)
        return self._run(loaded, self._cases[index].check, self._on_device.inputs[index])

    def _run(self, loaded: LoadedProgram, check: Check, inputs: Sequence[Any]) -> list[tuple[Any, TensorSpec]]:
        """Return the results of a call, and in a program with state of the calls that show the state it leaves."""
        sequences, device = self._sequences, self._on_device.device
        if sequences is None:
            return self._called(loaded, inputs)
        begun = sequences.begun(loaded, device, check)
        return [*kept(device, self._called(begun, inputs)), *sequences.shown(begun, device)]

    def _called(self, loaded: LoadedProgram, inputs: Sequence[Any]) -> list[tuple[Any, TensorSpec]]:
        """Call a program once, note how long it took, and return its results."""
        destinations = self._on_device.destinations
        self._poison(zip(destinations, self._specs.outputs, strict=False))
        start = time.perf_counter()
        results = loaded.call(inputs, destinations)
        self._called_s = time.perf_counter() - start
        return list(zip(results, self._specs.outputs, strict=True))

    def _poison(self, views: Iterable[tuple[Any, TensorSpec]]) -> None:
        for view, spec in views:
            self._on_device.device.write(view, spec, poison_bits(spec))

    def _changed_inputs(self, index: int) -> dict[int, int]:
        """Return the inputs that a program changed but should not have, with the number of their changed elements."""
        changed = {}
        for position, array in enumerate(self._cases[index].inputs):
            if position in self._overwritten:
                continue
            spec, word = self._specs.inputs[position], f"u{array.dtype.itemsize}"
            found = self._on_device.device.read(self._on_device.inputs[index][position], spec)
            if not np.array_equal(found.view(word), array.view(word)):
                changed[position] = int((found.view(word) != array.view(word)).sum())
        return changed

    def _written_behind(self, index: int) -> str | None:
        """Say what a program wrote behind the end of a buffer, or None; the guards are whole again then.

        Buffers that whole programs return are IREE's own, and have no guard.
        """
        buffers, message = self._on_device, None
        inputs = enumerate(zip(buffers.inputs[index], self._specs.inputs, strict=True))
        outputs = enumerate(zip(buffers.destinations, self._specs.outputs, strict=False))
        for what, position, (view, spec) in (*(("input", *i) for i in inputs), *(("output", *o) for o in outputs)):
            if changed := buffers.device.mend_guard(view, spec):
                message = message or f"{changed} bytes behind the end of {what} {position} were overwritten"
        return message

    def _restore_input(self, index: int, position: int) -> None:
        buffers, array = self._on_device, self._cases[index].inputs[position]
        buffers.device.write(buffers.inputs[index][position], self._specs.inputs[position], array)


def _after(check: Check) -> str:
    return f" after {', '.join(f'@{name}' for name in check.before)}" if check.before else ""
