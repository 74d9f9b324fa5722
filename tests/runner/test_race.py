"""The distribution of measuring time, with a simulated machine: no process, no clock but its own."""

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from fixed_targets import FIXED_VULKAN

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.runner.options import RacingOptions, RunnerOptions, SampleOptions
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import Pair, RequestFailed, SamplePairs
from mlir_sched.runner.race import (
    FIRST_PAIRS,
    Contender,
    Places,
    Race,
    baseline_timing,
    independent_ratios,
    kept_pairs,
)
from mlir_sched.runner.statistics import median_interval
from mlir_sched.targets.target import LOCAL, Driver

PROGRAM = Program(b"", "task", (), (), True)
BASELINE_S = 1e-3


class Machine:
    """Samples programs of known speed with skewed noise.

    Attributes:
        busy: Share of pairs that something disturbs.
        shared: Share of pairs that are taken with the baseline sample of the pair before.
    """

    def __init__(
        self,
        call_s: Mapping[int, float],
        monkeypatch: pytest.MonkeyPatch,
        *,
        busy: float = 0.0,
        shared: float = 0.0,
        slowdown: float = 3.0,
        noise: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.call_s, self.busy, self.slowdown, self.noise = call_s, busy, slowdown, noise
        self.now, self.shared, self.kept_s = 0.0, shared, 0.0
        self.rng = np.random.default_rng(seed)
        monkeypatch.setattr("mlir_sched.runner.race.time.perf_counter", lambda: self.now)

    def warm(self, contender: Contender) -> float:
        return self.call_s[contender.handle]

    def ask_pairs(self, contender: Contender, request: SamplePairs) -> tuple[Pair, ...]:
        return tuple(self._pair(contender, request) for _ in range(request.pairs))

    def _pair(self, contender: Contender, request: SamplePairs) -> Pair:
        baseline, own = (s * self.rng.lognormal(0, self.noise) for s in (BASELINE_S, self.call_s[contender.handle]))
        shares = self.kept_s > 0 and self.shared > 0 and self.rng.random() < self.shared
        self.kept_s = baseline = self.kept_s if shares else baseline
        quiet = self.rng.random() >= self.busy
        if not quiet:
            own *= self.slowdown
        self.now += baseline * request.baseline_calls + own * request.calls
        return Pair(baseline, own, quiet, shared=shares)


def run(
    machine: Machine,
    *,
    options: RunnerOptions | None = None,
    places: Places | None = None,
    spreads: deque[float] | None = None,
    seed: int = 1,
) -> dict[int, Contender]:
    contenders = [Contender(handle, PROGRAM) for handle in machine.call_s]
    options = options or RunnerOptions()
    arguments = machine.ask_pairs, machine.warm, options, BASELINE_S
    Race(*arguments, seed=seed, places=places, spreads=spreads).run(contenders)
    return {c.handle: c for c in contenders}


SEVERAL = dict.fromkeys(range(10, 17), 1e-3)
"""Further programs, by whose pairs two pairs of another one are judged."""


@pytest.mark.parametrize("slower", [1.15, 2.0, 26.0])
def test_clear_losers_get_two_pairs_where_others_show_how_far_pairs_are_off(
    monkeypatch: pytest.MonkeyPatch, slower: float
) -> None:
    contenders = run(Machine({1: 1e-3 * slower, **SEVERAL}, monkeypatch))
    assert len(contenders[1].pairs) == 2
    assert min(len(contenders[handle].pairs) for handle in SEVERAL) >= 6


def test_beside_few_others_a_clear_loser_gets_the_pairs_of_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    contenders = run(Machine({1: 1e-3, 2: 3e-3}, monkeypatch, noise=0.03))
    assert len(contenders[2].pairs) == 6
    assert len(contenders[1].pairs) > 6


@pytest.mark.parametrize(("spread", "pairs"), [(1.02, 2), (4.0, 6)])
def test_what_earlier_races_showed_of_two_pairs_counts(
    monkeypatch: pytest.MonkeyPatch, spread: float, pairs: int
) -> None:
    spreads = deque([spread] * 20, maxlen=20)
    contenders = run(Machine({1: 1e-3, 2: 2e-3}, monkeypatch), spreads=spreads)
    assert len(contenders[2].pairs) == pairs
    assert spreads[-1] < 1.2, "this race shows what follows it"
    assert list(spreads).count(spread) < 20


def test_what_is_clearly_slower_than_the_programs_that_hold_all_places_loses(monkeypatch: pytest.MonkeyPatch) -> None:
    times, options = {1: 1e-3, 2: 1.001e-3, 3: 1.4e-3}, RunnerOptions(racing=RacingOptions(precision=1e-9))
    for held, few in [((0.9, 1.1), {3}), ((0.9, 1.1, 0.8), {3}), ((1.1, 1.2), {1, 2, 3}), ((5.0,), {3})]:
        contenders = run(Machine(times, monkeypatch, noise=0.005), options=options, places=Places(2, held))
        assert {handle for handle, c in contenders.items() if len(c.pairs) == 6} == few, held


def test_nothing_loses_before_as_many_are_measured_as_there_are_places(monkeypatch: pytest.MonkeyPatch) -> None:
    contenders = run(Machine({1: 1e-3, 2: 2e-3, 3: 4e-3}, monkeypatch, noise=0.03), places=Places(3))
    assert min(len(c.pairs) for c in contenders.values()) > 6


@pytest.mark.parametrize(("busy", "shared", "spread"), [(0.0, 0.0, 1), (1.0, 0.0, 0), (0.0, 1.0, 0)])
def test_the_first_two_pairs_of_a_program_show_how_far_two_are_off(
    monkeypatch: pytest.MonkeyPatch, busy: float, shared: float, spread: int
) -> None:
    spreads = deque[float]()
    machine = Machine({1: 1e-3, 2: 1.01e-3}, monkeypatch, busy=busy, shared=shared)
    contenders = run(machine, spreads=spreads)
    assert len(spreads) == 2 * spread, "neither those of later pairs, nor of disturbed ones or of one baseline sample"
    assert min(len(c.pairs) for c in contenders.values()) >= 6


def test_pairs_that_share_a_sample_of_the_baseline_make_no_loser(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = {s: run(Machine({1: 1e-3, 2: 3e-3}, monkeypatch, noise=0.03, shared=s))[2].pairs for s in (0.0, 1.0)}
    assert len(alone[0.0]) == 6
    assert len(alone[1.0]) > 6, "one sample of the baseline shows nothing of its own noise"


@pytest.mark.parametrize("others", [1, 5])
def test_a_program_that_is_as_fast_as_what_holds_the_place_seldom_loses(
    monkeypatch: pytest.MonkeyPatch, others: int
) -> None:
    """Its place is held by a program of its own speed; the others are far from it, so that only their spread counts."""
    lost, runs, options = 0, 300, RunnerOptions(racing=RacingOptions(budget_s=0.03))
    for seed in range(runs):
        times = {1: 1e-3, **dict.fromkeys(range(2, 2 + others), 5e-4)}
        machine = Machine(times, monkeypatch, noise=0.03, seed=seed)
        found = run(machine, options=options, places=Places(others + 1, (1.0,)), seed=seed)
        lost += len(found[1].pairs) == (2 if others > 1 else 6)
    assert lost / runs <= 0.05


@dataclass
class Checks:
    """Programs some of which are wrong, or become so while they are timed, and in which order they were checked."""

    wrong: Collection[int] = ()
    made: list[int] = field(default_factory=list)
    worn: Collection[int] = ()
    confirmed: list[int] = field(default_factory=list)

    def confirm(self, contender: Contender) -> None:
        self.confirmed.append(contender.handle)
        if contender.handle in self.worn:
            contender.failure = Failure(FailureClass.WRONG_RESULT, "after timing: 3 of 9 elements are too far off")

    def prove(self, contender: Contender) -> None:
        self.made.append(contender.handle)
        if contender.handle in self.wrong:
            contender.failure = Failure(FailureClass.WRONG_RESULT, "3 of 9 elements are too far off")
        contender.proven = contender.failure is None


def run_unproven(machine: Machine, checks: Checks, places: Places) -> dict[int, Contender]:
    contenders = [Contender(handle, PROGRAM, proven=False) for handle in machine.call_s]
    arguments = machine.ask_pairs, machine.warm, RunnerOptions(), BASELINE_S
    Race(*arguments, seed=1, places=places, prove=checks.prove, confirm=checks.confirm).run(contenders)
    return {c.handle: c for c in contenders}


TENTHS = {handle: 1e-3 * (1 + 0.1 * handle) for handle in range(10)}
"""Programs of which each is slower than the one before."""


def test_programs_that_may_win_a_place_are_proven_the_fastest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks()
    contenders = run_unproven(Machine(TENTHS, monkeypatch, noise=0.003), checks, Places(2))
    assert checks.made == [0, 1]
    assert [handle for handle, c in contenders.items() if c.proven] == [0, 1]
    assert {len(contenders[handle].pairs) for handle in range(3, 10)} == {2}


def test_a_wrong_program_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(wrong={0, 2})
    contenders = run_unproven(Machine(TENTHS, monkeypatch, noise=0.003), checks, Places(2))
    assert checks.made == [0, 1, 2, 3]
    assert [handle for handle, c in contenders.items() if c.proven] == [1, 3]
    assert min(len(contenders[handle].pairs) for handle in (1, 3)) >= 6


def test_a_place_of_a_program_that_is_wrong_after_its_pairs_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks(worn={0, 1})
    contenders = run_unproven(Machine(TENTHS, monkeypatch, noise=0.003), checks, Places(2))
    assert checks.made == [0, 1, 2, 3]
    assert [handle for handle, c in contenders.items() if c.proven and c.failure is None] == [2, 3]
    assert min(len(contenders[handle].pairs) for handle in (2, 3)) >= 6
    assert checks.confirmed == [*range(10), 2, 3], "those with further pairs once more"


def test_no_program_is_proven_that_is_slower_than_those_that_hold_the_places(monkeypatch: pytest.MonkeyPatch) -> None:
    checks = Checks()
    contenders = run_unproven(Machine(TENTHS, monkeypatch, noise=0.003), checks, Places(2, (1.5, 2.0)))
    assert checks.made == []
    assert {len(c.pairs) for c in contenders.values()} == {2}
    assert not any(c.failure for c in contenders.values())


def test_a_place_of_a_program_that_fails_while_it_is_timed_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, checks = Machine(TENTHS, monkeypatch, noise=0.003), Checks()
    ask_pairs = machine.ask_pairs

    def failing(contender: Contender, request: SamplePairs) -> tuple[Pair, ...]:
        if contender.handle == 0 and len(contender.pairs) >= FIRST_PAIRS:
            raise RequestFailed(Failure(FailureClass.RUN_CRASH, "gone"))
        return ask_pairs(contender, request)

    monkeypatch.setattr(machine, "ask_pairs", failing)
    contenders = run_unproven(machine, checks, Places(1))
    assert checks.made == [0, 1]
    assert contenders[0].failure is not None
    assert len(contenders[1].pairs) >= 6


@pytest.mark.parametrize(
    ("driver", "call_s", "pairs"),
    [(LOCAL, 2.5, 1), (LOCAL, 0.5, 3), (FIXED_VULKAN.driver, 5.0, 1), (FIXED_VULKAN.driver, 1.5, 2)],
)
def test_a_first_look_at_a_slow_program_is_short(
    monkeypatch: pytest.MonkeyPatch, driver: Driver, call_s: float, pairs: int
) -> None:
    contenders = run(Machine({1: call_s}, monkeypatch), options=RunnerOptions.for_device(driver).first_look)
    assert len(contenders[1].pairs) == pairs


def test_programs_slower_than_the_baseline_lose_even_without_a_better_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run(Machine({1: 10e-3}, monkeypatch), places=Places(held=(1.0,)))[1].pairs) == 6


def test_near_ties_get_their_budget_and_decided_ones_less(monkeypatch: pytest.MonkeyPatch) -> None:
    contenders = run(Machine({1: 0.500e-3, 2: 0.502e-3, **dict.fromkeys(range(3, 20), 0.0006)}, monkeypatch))
    assert min(len(contenders[h].pairs) for h in (1, 2)) > max(len(contenders[h].pairs) for h in range(3, 20))


def test_ranking_of_the_best_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    contenders = run(Machine({h: 1e-3 * (0.5 + 0.03 * h) for h in range(1, 11)}, monkeypatch))
    assert max(contenders.values(), key=lambda c: c.ratio().median).handle == 1


@pytest.mark.parametrize("busy", [0.0, 0.5, 1.0])
def test_time_spent_is_bounded(monkeypatch: pytest.MonkeyPatch, busy: float) -> None:
    machine = Machine(dict.fromkeys(range(1, 17), 0.001), monkeypatch, busy=busy)
    run(machine)
    assert machine.now <= 16 * RacingOptions().budget_s * 2.5


@pytest.mark.parametrize("seed", range(10))
def test_disturbed_pairs_do_not_make_a_loser(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    machine = Machine({1: 0.4e-3, 2: 0.8e-3}, monkeypatch, busy=0.7, slowdown=5.0, seed=seed)
    contenders = run(machine)
    assert contenders[1].ratio().median == pytest.approx(2.5, rel=0.05)
    assert contenders[1].timing().disturbed > 0


def test_a_single_contender_gets_no_more_than_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    options = RunnerOptions(racing=RacingOptions(precision=1e-9))
    contenders = run(Machine({1: 0.001}, monkeypatch), options=options)
    assert contenders[1].spent_s <= 1.5 * options.racing.budget_s


def test_contender_that_fails_while_timed_keeps_its_failure_and_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine({1: 1e-3, 2: 1e-3}, monkeypatch)
    failure = Failure(FailureClass.RUN_CRASH, "gone")

    def warm(contender: Contender) -> float:
        if contender.handle == 2:
            raise RequestFailed(failure)
        return 1e-3

    monkeypatch.setattr(machine, "warm", warm)
    contenders = run(machine)
    assert contenders[2].failure == failure
    assert contenders[2].pairs == []
    assert contenders[1].failure is None


def test_equal_seeds_take_equal_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (run(Machine({1: 1e-3, 2: 1.1e-3}, monkeypatch)) for _ in range(2))
    assert [c.pairs for c in first.values()] == [c.pairs for c in second.values()]


def test_short_programs_are_called_often_enough_to_fill_a_sample() -> None:
    options = SampleOptions(least_s=2e-3)
    assert options.calls(3e-6) == 667
    assert options.calls(0.3) == 1
    bounded = SampleOptions(least_s=2e-3, min_calls=12, max_calls=200)
    assert [bounded.calls(s) for s in (3e-6, 1e-4, 0.3)] == [200, 20, 12]


def test_long_programs_are_called_less_often_than_others() -> None:
    patient = SampleOptions(least_s=0.06, min_calls=24, max_calls=64, patience_s=1.0)
    assert [patient.calls(s) for s in (1e-3, 0.03, 0.1, 3.0)] == [60, 24, 10, 1]


def test_disturbed_pairs_count_only_where_quiet_ones_are_too_few() -> None:
    quiet, disturbed = Pair(1.0, 1.0, True), Pair(1.0, 9.0, False)
    assert kept_pairs([quiet] * 6 + [disturbed] * 20, 6) == [quiet] * 6
    assert kept_pairs([quiet] * 5 + [disturbed], 6) == [quiet] * 5 + [disturbed]
    assert baseline_timing([quiet] * 6 + [disturbed] * 20).disturbed == 20


def final(**changes: Any) -> RunnerOptions:
    """Return the options of a final measurement with other ones of its racing."""
    options = RunnerOptions.final(LOCAL)
    return replace(options, racing=replace(options.racing, **changes))


def coverage(monkeypatch: pytest.MonkeyPatch, options: RunnerOptions, runs: int = 400) -> float:
    """Return how often the interval of a program as fast as the baseline holds 1, on a machine with skewed noise."""
    held = 0
    for seed in range(runs):
        machine = Machine({1: BASELINE_S}, monkeypatch, noise=0.02, seed=seed)
        timing = run(machine, options=options)[1].timing()
        held += timing.ratio_low <= 1.0 <= timing.ratio_high
    return held / runs


@pytest.mark.parametrize("budget_s", [0.06, 0.2])
def test_intervals_of_a_fixed_number_of_pairs_cover_95_percent(
    monkeypatch: pytest.MonkeyPatch, budget_s: float
) -> None:
    options = final(budget_s=budget_s, min_pairs=6)
    assert 0.94 <= coverage(monkeypatch, options) <= 0.99


def test_the_number_of_pairs_is_fixed_before_they_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    options = final(budget_s=0.2)
    taken = {len(run(Machine({1: 1e-3}, monkeypatch, noise=n), options=options)[1].pairs) for n in (0.0, 0.01, 0.2)}
    assert len(taken) == 1


def test_pairs_that_share_a_sample_of_the_baseline_count_once() -> None:
    shared = [Pair(1.0, 0.5, True), Pair(1.0, 0.4, True, shared=True), Pair(1.0, 0.6, True, shared=True)]
    other = [Pair(1.2, 0.5, True), Pair(1.2, 0.5, True, shared=True)]
    assert independent_ratios([*shared, *other]) == [2.0, 2.4]
    assert independent_ratios(shared) == [2.0, 2.5, 1.0 / 0.6]
    assert baseline_timing([*shared, *other]).samples == 2


def test_intervals_of_shared_samples_cover_95_percent_and_those_of_pairs_do_not() -> None:
    rng = np.random.default_rng(0)
    held = np.zeros(2)
    for _ in range(1000):
        baselines = rng.lognormal(0.0, 0.02, 8)
        own = rng.lognormal(0.0, 0.005, (8, 3))
        pairs = [
            Pair(b, o, True, shared=i > 0) for b, row in zip(baselines, own, strict=True) for i, o in enumerate(row)
        ]
        for kind, ratios in enumerate((independent_ratios(pairs), [p.baseline_s / p.own_s for p in pairs])):
            interval = median_interval(ratios)
            held[kind] += interval.low <= 1.0 <= interval.high
    assert held[0] / 1000 >= 0.95
    assert held[1] / 1000 < 0.9
