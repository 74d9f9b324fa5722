"""What the programs of one task share in the runner process: input and output buffers, and the references."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mlir_sched.runner.device import Device, LoadedProgram, bits, poison, values
from mlir_sched.runner.program import Program
from mlir_sched.runner.verify import Array, Check, InputKind, Rule, compare, holds_poison, make_inputs, poisoned


@dataclass
class Case:
    """One check made concrete: its inputs here and on the device, and the right results."""

    check: Check
    inputs: tuple[Array, ...]
    input_buffers: list[Any]
    references: list[Array]


class Workspace:
    """Buffers of one device for programs that take the tensors of ``baseline``.

    All programs run on the same buffers, so none is helped or hurt by where its memory happens to lie.

    Args:
        device: Where they live.
        baseline: The program whose results are right.
        rule: The checks; the references of each are computed here.

    Raises:
        RuntimeError: The baseline fails, leaves poison or is not the same twice.
    """

    def __init__(self, device: Device, baseline: Program, rule: Rule) -> None:
        self._device = device
        self._specs = baseline
        written = baseline.outputs if baseline.writes_into_arguments else ()
        self._destinations = [device.buffer(poisoned(spec), spec) for spec in written]
        self.cases = [self._case(check) for check in rule.checks]
        loaded = device.load(baseline)
        for case in self.cases:
            case.references = [values(v, s).copy() for v, s in self._results(loaded, case)]
            if any(holds_poison(r, s) for r, s in zip(case.references, baseline.outputs, strict=True)):
                raise RuntimeError("the baseline leaves elements of its output unwritten")
        for index in range(len(self.cases)):
            if error := self.verify(loaded, index):
                raise RuntimeError(f"the baseline does not reproduce its own result: {error}")

    def verify(self, loaded: LoadedProgram, index: int) -> str | None:
        """Run check ``index`` on a program and say what is wrong, or None."""
        case = self.cases[index]
        results = self._results(loaded, case)
        message = self._input_changed(case)
        for position, (view, spec) in enumerate(results):
            if message is None and view.byte_length != spec.bytes:
                message = f"output {position} has {view.byte_length} bytes instead of {spec.bytes}"
            if message is None:
                reference = case.references[position]
                error = compare(reference, values(view, spec), spec, case.check.effective_tolerance(reference))
                message = error and f"output {position}: {error}"
            if view.byte_length == spec.bytes:
                poison(view, spec)  # a returned buffer goes back to the pool, where a later call may find it
        return message and f"{case.check.kind} inputs: {message}"

    def runner_of(self, loaded: LoadedProgram) -> Callable[[int], None]:
        """Return a function that calls the program so many times, on float inputs where there are any."""
        case = next((c for c in self.cases if c.check.kind == InputKind.RANDOM), self.cases[0])
        return loaded.bind(case.input_buffers, self._destinations)

    def _case(self, check: Check) -> Case:
        inputs = make_inputs(self._specs.inputs, check)
        buffers = [self._device.buffer(a, s) for a, s in zip(inputs, self._specs.inputs, strict=True)]
        return Case(check, inputs, buffers, [])

    def _results(self, loaded: LoadedProgram, case: Case) -> list[tuple[Any, Any]]:
        for view, spec in zip(self._destinations, self._specs.outputs, strict=False):
            poison(view, spec)
        views = loaded.call(case.input_buffers, self._destinations)
        return list(zip(views, self._specs.outputs, strict=True))

    def _input_changed(self, case: Case) -> str | None:
        """Say which input buffer a call changed, and restore it."""
        message = None
        for position, (array, view) in enumerate(zip(case.inputs, case.input_buffers, strict=True)):
            spec = self._specs.inputs[position]
            held, original = bits(view, spec), array.view(f"u{array.dtype.itemsize}")
            if not np.array_equal(held, original):
                message = message or f"input {position} was overwritten in {int((held != original).sum())} elements"
                held[...] = original
        return message


def call_seconds(run: Callable[[int], None], sample_s: float) -> float:
    """Return rough seconds per call of a warm program: the best of the samples that fit three times ``sample_s``."""
    run(1)
    calls, best = 1, float("inf")
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        run(calls)
        now = time.perf_counter()
        best = min(best, (now - before) / calls)
        if now - start >= 3 * sample_s:
            return best
        if now - before < sample_s / 2:
            calls *= 4
