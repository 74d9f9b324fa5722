"""Pairs of samples, with a clock that computes instead of measuring."""

from dataclasses import dataclass, field

import pytest

from mlir_sched.runner.protocol import Pair, SamplePairs, Verify
from mlir_sched.runner.worker import server
from mlir_sched.runner.worker.benches.device_bench import DeviceBench
from mlir_sched.runner.worker.paired_sampling import PairClock, PairSampler
from mlir_sched.runner.worker.wall_clock import call_seconds


@dataclass
class FakeClock(PairClock[float]):
    """Programs are their seconds per call; ``quiet`` says of every pair in turn whether it was, the last one stays."""

    quiet: list[bool] = field(default_factory=lambda: [True])
    sampled: list[float] = field(default_factory=list)

    def sample(self, program: float, calls: int) -> tuple[float, bool]:
        self.sampled.append(program)
        return program * (1 + 0.01 * calls), True

    def was_quiet(self) -> bool:
        return self.quiet.pop(0) if len(self.quiet) > 1 else self.quiet[0]


def request(pairs: int, pairs_per_baseline: int, seed: int = 0) -> SamplePairs:
    return SamplePairs(1, pairs, 1, 1, seed, pairs_per_baseline)


def test_a_short_baseline_is_sampled_for_every_pair_in_random_order() -> None:
    clock = FakeClock()
    pairs = PairSampler(clock).pairs(0.015, 0.003, request(20, pairs_per_baseline=8))
    assert clock.sampled.count(0.015) == 20
    assert len(pairs) == 20
    assert {tuple(clock.sampled[i : i + 2]) for i in range(0, 40, 2)} == {(0.015, 0.003), (0.003, 0.015)}


def test_a_long_baseline_sample_serves_pairs_of_several_programs() -> None:
    clock = FakeClock()
    sampler = PairSampler(clock)
    first, second = sampler.pairs(2.0, 0.1, request(2, 3)), sampler.pairs(2.0, 0.2, request(4, 3))
    assert clock.sampled.count(2.0) == 2
    assert {pair.baseline_s for pair in (*first, *second)} == {2.02}
    assert [pair.shared for pair in (*first, *second)] == [False, True, True, False, True, True]
    assert [pair.own_s for pair in second] == pytest.approx([0.202] * 4)


def test_a_baseline_sample_serves_a_pair_per_8_ms() -> None:
    clock = FakeClock()
    PairSampler(clock).pairs(0.034, 0.001, request(12, pairs_per_baseline=8))
    assert clock.sampled.count(0.034) == 3  # 34.3 ms serve four pairs
    assert clock.sampled.count(0.001) == 12


def test_a_long_baseline_sample_serves_no_longer_than_it_took() -> None:
    clock = FakeClock()
    PairSampler(clock).pairs(2.0, 1.0, request(8, pairs_per_baseline=8))
    assert clock.sampled.count(2.0) == 3  # one for a pair and the two samples of a second that follow


def test_a_disturbed_sample_serves_its_own_pair_only() -> None:
    clock = FakeClock(quiet=[False, True])
    pairs = PairSampler(clock).pairs(2.0, 0.1, request(3, 8))
    assert [pair.quiet for pair in pairs] == [False, True, True]
    assert clock.sampled.count(2.0) == 2


def test_a_sample_is_forgotten_with_its_baseline() -> None:
    clock = FakeClock()
    sampler = PairSampler(clock)
    sampler.pairs(2.0, 0.1, request(1, 8))
    sampler.forget()
    (pair,) = sampler.pairs(3.0, 0.1, request(1, 8))
    assert pair.baseline_s == pytest.approx(3.03)


@pytest.mark.parametrize("races", [True, False])
def test_a_check_between_pairs_ends_what_a_sample_serves(races: bool) -> None:
    class Samples(DeviceBench):
        def __init__(self) -> None:
            self._sampler = PairSampler(FakeClock())  # type: ignore[arg-type]

        def verify(self, handle: int, check: int) -> None:
            pass

        def verify_races(self, handle: int, check: int) -> None:
            pass

        def pairs(self, request: SamplePairs) -> tuple[Pair, ...]:
            return self._sampler.pairs(2.0, 0.1, request)  # type: ignore[arg-type]

    bench, shared = Samples(), list[bool]()
    for asked in (request(1, 8), request(1, 8), Verify(1, 0, races), request(1, 8)):
        shared += [pair.shared for pair in server._answer(bench, asked) or ()]
    assert shared == [False, True, False]


def test_one_call_tells_the_time_of_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def run(calls: int) -> None:
        nonlocal now
        now += 2.0 * calls

    monkeypatch.setattr("mlir_sched.runner.worker.wall_clock.time.perf_counter", lambda: now)
    assert call_seconds(run, 1e-3) == 2.0
    assert now == 2.0
