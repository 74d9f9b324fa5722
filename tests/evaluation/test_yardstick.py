"""Where the untuned code of a task is slow, its candidates are timed in turns with a fast script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import pytest
from emission_cases import DISPATCH, timing
from replayed_run import task_of

from mlir_sched.compiler import CompileResult
from mlir_sched.compiler.pool import CompileRequest
from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.evaluation.yardstick import FAST, SLOW_S
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.runner import BaselineError, Places, Runner, RunResult

TASK = task_of("matmul", DISPATCH)
UNTUNED = b"untuned"


@dataclass
class Machine:
    """Programs with times in place of measurements.

    Attributes:
        seconds: Seconds per call by program.
        broken: A program that fails as a baseline.
        unchecked: A program that is timed without all checks.
        baselines: What programs were timed with, session by session.
        places: What they competed for, session by session.
    """

    seconds: dict[bytes, float]
    broken: bytes = b""
    unchecked: bytes = b""
    baselines: list[bytes] = field(default_factory=list)
    places: list[Places | None] = field(default_factory=list)

    def measure(
        self, baseline: Any, candidates: Sequence[Any], checks: object, *, places: Places | None = None
    ) -> tuple[Timing, Sequence[RunResult]]:
        del checks
        self.baselines.append(baseline.vmfb)
        self.places.append(places)
        if baseline.vmfb == self.broken:
            raise BaselineError("it crashes")
        unit_s = self.seconds[baseline.vmfb]
        return self._timing(unit_s, unit_s), [self._result(unit_s, candidate.vmfb) for candidate in candidates]

    def _result(self, unit_s: float, vmfb: bytes) -> RunResult:
        if vmfb not in self.seconds:
            return RunResult(None, Failure(FailureClass.WRONG_RESULT, "3 of 9 elements are too far off"))
        verdict = Verdict.NOT_CHECKED if vmfb == self.unchecked else Verdict.RIGHT
        found = self._timing(unit_s, self.seconds[vmfb])
        return RunResult(found, None, least=found.ratio_low, verdict=verdict)

    @staticmethod
    def _timing(unit_s: float, own_s: float) -> Timing:
        return replace(timing(unit_s / own_s), median_s=own_s)


@dataclass
class Pool:
    """Compiles a script to its own text."""

    workers: int = 1
    flags: tuple[str, ...] = ()
    chain_length: int = 0
    compiled: list[bytes] = field(default_factory=list)

    def compile_all(self, candidates: Sequence[CompileRequest]) -> Any:
        for index, candidate in enumerate(candidates):
            vmfb = UNTUNED if candidate.script is None else candidate.script.encode()
            self.compiled.append(vmfb)
            yield index, CompileResult(vmfb, None, vmfb.decode(), 0.1)

    def close(self) -> None:
        pass


@pytest.fixture
def evaluate(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that evaluates rounds of scripts on a machine, and returns the ratios of the last round."""

    def run(
        machine: Machine,
        *rounds: Sequence[str],
        code: CompiledCode | None = None,
        valid: bool = False,
        known: Mapping[str, Outcome] = MappingProxyType({}),
    ) -> list[float | None]:
        monkeypatch.setattr("mlir_sched.evaluation.evaluator.CompilerPool", lambda *_, **__: Pool())
        monkeypatch.setattr(Runner, "measure", lambda _, *args, **kwargs: machine.measure(*args, **kwargs))
        monkeypatch.setattr(Runner, "spare_cores", lambda _: ())
        with CompileAndRun((), code=code) as evaluator:
            for scripts in rounds:
                outcomes = dict(evaluator.evaluate(TASK, scripts, known))
        found = [outcomes[index].valid if valid else outcomes[index].timing for index in range(len(scripts))]
        return [each.ratio if each else None for each in found]

    return run


SLOW = {UNTUNED: 0.1, b"a": 0.02, b"b": 0.01, b"c": 0.04, b"d": 0.005}
"""Seconds per call of untuned code that is slow, and of four scripts."""


def test_after_the_first_round_the_best_script_is_what_candidates_are_timed_with(evaluate: Any) -> None:
    machine = Machine(SLOW)
    assert evaluate(machine, ["a", "b", "wrong"], ["c", "d", "wrong"]) == pytest.approx([2.5, 20.0, None])
    assert evaluate(Machine(SLOW), ["a", "b"], ["d"], ["c"]) == pytest.approx([2.5])
    assert machine.baselines == [UNTUNED, UNTUNED, UNTUNED, b"b"], "first for its own time"


def test_a_faster_script_does_not_take_its_place(evaluate: Any) -> None:
    machine = Machine(SLOW)
    evaluate(machine, ["b"], ["d"], ["a"])
    assert machine.baselines[1:] == [UNTUNED, UNTUNED, b"b", b"b"]


@pytest.mark.parametrize(
    "seconds",
    [
        {UNTUNED: 0.1, b"a": 0.101 / FAST, b"b": 0.01},
        {UNTUNED: SLOW_S / 2, b"a": SLOW_S / 40, b"b": 1.0},
        {UNTUNED: 0.1, b"b": 0.01},
    ],
    ids=["a gain that is not large", "untuned code that is not slow", "a script that is wrong"],
)
def test_otherwise_candidates_are_timed_with_the_untuned_code(seconds: dict[bytes, float], evaluate: Any) -> None:
    machine = Machine(seconds)
    evaluate(machine, ["a"], ["b"])
    assert set(machine.baselines) == {UNTUNED}


def test_where_the_script_fails_the_untuned_code_takes_its_place_again(evaluate: Any) -> None:
    machine = Machine(SLOW, broken=b"b")
    assert evaluate(machine, ["a", "b"], ["c"], ["d"]) == pytest.approx([20.0])
    assert machine.baselines[1:] == [UNTUNED, UNTUNED, b"b", UNTUNED, UNTUNED]


def test_a_script_that_was_not_checked_takes_no_place_and_its_code_is_not_kept(evaluate: Any) -> None:
    machine, code, pool = Machine(SLOW, unchecked=b"b"), CompiledCode(3), Pool()
    evaluate(machine, ["a", "b"], ["c"], code=code)
    assert machine.baselines[1:] == [UNTUNED, UNTUNED, b"a"]
    code.forget()
    list(code.of(pool, [(TASK, script) for script in ("a", "b", "c", None)]))  # type: ignore[arg-type]
    assert pool.compiled == [b"b"]


def test_a_candidate_that_was_not_checked_beside_a_fast_script_is_no_valid_one(evaluate: Any) -> None:
    assert evaluate(Machine(SLOW, unchecked=b"c"), ["b"], ["c"], valid=True) == [None]


@dataclass
class LuckyMachine(Machine):
    """A machine on which the first measurement of a program says that it is twice as fast as it is."""

    met: set[bytes] = field(default_factory=set)

    def _result(self, unit_s: float, vmfb: bytes) -> RunResult:
        own_s = self.seconds[vmfb] / (1 if vmfb in self.met else 2)
        self.met.add(vmfb)
        return RunResult(self._timing(unit_s, own_s), None, verdict=Verdict.RIGHT)


def test_the_luck_of_the_fastest_is_no_factor_of_the_ratios_that_follow(evaluate: Any) -> None:
    machine = LuckyMachine(SLOW, met={b"c"})
    assert evaluate(machine, ["a", "b"], ["c"]) == pytest.approx([2.5])
    assert machine.baselines[-1] == b"b"


def test_what_was_far_faster_by_luck_alone_is_no_yardstick(evaluate: Any) -> None:
    machine = LuckyMachine({UNTUNED: 0.1, b"a": 0.15 / FAST, b"c": 0.04}, met={b"c"})
    assert evaluate(machine, ["a"], ["c"]) == pytest.approx([2.5])
    assert machine.baselines[-1] == UNTUNED


KNOWN = {
    "slow": Outcome(timing(3.0), None, "slow", verdict=Verdict.RIGHT),
    "unchecked": Outcome(timing(9.0), None, "unchecked"),
    "fast": Outcome(timing(12.0), None, "fast", verdict=Verdict.RIGHT),
    "medium": Outcome(timing(4.0), None, "medium", verdict=Verdict.RIGHT),
    "wrong": Outcome(None, Failure(FailureClass.WRONG_RESULT, "3 of 9 elements are too far off"), "wrong"),
}


def held(places: Places | None) -> tuple[float, ...]:
    assert places is not None
    return places.held


QUICK = {UNTUNED: 6e-3, b"a": 2e-3, b"b": 1e-3, b"c": 3e-3, b"d": 4e-3, b"e": 1e-3}
"""Seconds per call of untuned code and scripts that are all timed beside the untuned code."""


def test_scripts_compete_with_the_fastest_right_ones_that_were_timed_before_for_as_many_places_as_scripts_stay(
    evaluate: Any,
) -> None:
    machine = Machine(QUICK, unchecked=b"b")
    evaluate(machine, ["a", "off", "b"], ["c", "d"], ["e"], code=CompiledCode(2), known=KNOWN)
    first, second, third = machine.places[-3:]
    assert held(first) == (), "what other runs stored was measured at another time"
    assert held(second) == pytest.approx([2.998])
    assert held(third) == pytest.approx([2.998, 1.998])
    assert {places.count for places in machine.places[-3:] if places} == {2}


def test_where_no_script_stays_none_loses(evaluate: Any) -> None:
    machine = Machine(QUICK)
    evaluate(machine, ["a", "b"], ["c", "d", "e"])
    assert [each for each in machine.places if each] == [Places(2, whole=True), Places(3, whole=True)]


def test_beside_a_fast_script_the_places_are_held_by_what_was_timed_beside_it(evaluate: Any) -> None:
    machine = Machine(SLOW)
    evaluate(machine, ["b"], ["c"], ["d"], code=CompiledCode(3))
    assert machine.baselines[-2:] == [b"b", b"b"]
    assert held(machine.places[-2]) == ()
    assert held(machine.places[-1]) == pytest.approx([0.248])
