"""Where the time of a program goes, from IREE's records of its runs."""

from __future__ import annotations

import json
from itertools import cycle

import pytest

from mlir_sched.errors import MlirSchedError
from mlir_sched.program import profile
from mlir_sched.program.profile import ProgramProfile, merged, profile_program, read_profile
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.program import Program
from mlir_sched.targets.target import LOCAL

CONV, FIRST, SECOND = (
    "main$async_dispatch_0_conv_8x8_f32",
    "main$async_dispatch_1_sum_8_f32",
    "main$async_dispatch_4_sum_8_f32",
)


def listing(*runs: list[tuple[str, float]]) -> bytes:
    """Return what IREE lists for runs of (dispatch, microseconds), not in order."""
    rows = [
        {"type": "host_dispatch_event", "event_id": number, "key": name, "duration_ns": us * 1e3}
        for number, (name, us) in enumerate(event for run in runs for event in run)
    ]
    return "\n".join(json.dumps(row) for row in [{"type": "dispatch_summary"}, *reversed(rows)]).encode()


def test_a_profile_adds_up_the_calls_of_a_dispatch_and_leaves_out_the_first_run() -> None:
    warm = [(CONV, 10.0), (FIRST, 1.0), (FIRST, 2.0)]
    profile = read_profile(listing([(name, 100 * us) for name, us in warm], warm, warm), 3)
    assert profile.seconds == pytest.approx({CONV: 10e-6, FIRST: 3e-6})
    assert profile.calls == {CONV: 1, FIRST: 2}
    assert profile.call_s(FIRST) == pytest.approx(1.5e-6)
    assert profile.call_s("another") is None


def timed(*intervals: tuple[int, int]) -> bytes:
    """Return what IREE lists for a slow run and one of dispatches with these begins and ends, in microseconds."""
    slow = [(1000 * number, 1000 * number + 500) for number in range(len(intervals))]
    rows = [
        {
            "type": "host_dispatch_event", "event_id": number, "key": name, "duration_ns": 1e3 * (end - begin),
            "start_host_time_ns": 1000 * begin, "end_host_time_ns": 1000 * end,
        }
        for number, (name, (begin, end)) in enumerate(zip(cycle([CONV, FIRST, SECOND]), (*slow, *intervals)))
    ]  # fmt: skip
    return "\n".join(map(json.dumps, rows)).encode()


def test_a_profile_knows_how_long_no_dispatch_runs_within_a_run() -> None:
    assert read_profile(timed((9000, 9010), (9013, 9015), (9019, 9030)), 2).between_s == pytest.approx(7e-6)
    assert read_profile(timed((9000, 9020), (9001, 9005), (9007, 9010)), 2).between_s == 0.0, "two threads"
    assert read_profile(listing([(CONV, 1.0)], [(CONV, 1.0)]), 2).between_s == 0.0, "IREE does not say"


@pytest.mark.parametrize("broken", [listing(), listing([(CONV, 1.0), (FIRST, 1.0)], [(CONV, 1.0)])])
def test_records_that_are_no_equal_runs_are_refused(broken: bytes) -> None:
    with pytest.raises(MlirSchedError, match="equal runs"):
        read_profile(broken, 2)


def test_a_dispatch_of_an_unknown_name_counts_for_the_first_that_computes_the_same() -> None:
    profile = ProgramProfile({CONV: 6e-6, FIRST: 1e-6, SECOND: 3e-6}, {CONV: 1, FIRST: 1, SECOND: 1})
    assert profile.shares([CONV, FIRST]) == pytest.approx({CONV: 0.6, FIRST: 0.4})
    assert profile.shares([CONV, FIRST, SECOND]) == pytest.approx({CONV: 0.6, FIRST: 0.1, SECOND: 0.3})
    assert profile.shares([CONV]) == pytest.approx({CONV: 0.6})


def test_functions_in_a_row_have_one_profile() -> None:
    one = ProgramProfile({CONV: 1e-6}, {CONV: 1}, 4e-6)
    both = merged([one, ProgramProfile({CONV: 2e-6, FIRST: 1e-6}, {CONV: 1, FIRST: 3}, 1e-6)])
    assert both.between_s == pytest.approx(5e-6)
    assert both.seconds == pytest.approx({CONV: 3e-6, FIRST: 1e-6})
    assert both.calls == {CONV: 2, FIRST: 3}


@pytest.mark.parametrize(("call_s", "calls"), [(1e-3, 40), (0.05, 10), (0.13, 2), (1.9, 2)])
def test_a_profile_has_as_many_calls_as_fit_and_two_of_a_slow_program(
    call_s: float, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def run(name: str, *arguments: str) -> bytes:
        asked.extend(argument for argument in arguments if argument.startswith("--benchmark_min_time="))
        return listing(*[[(CONV, 1.0)]] * calls) if name == "reader" else b""

    monkeypatch.setattr(profile, "find_tools", lambda: ("benchmark", "reader"))
    monkeypatch.setattr(profile, "_run", run)
    program = Program(b"", "main", (), (), writes_into_arguments=False)
    profile_program(program, Check(InputKind.RANDOM, 1), driver=LOCAL, threads=1, call_s=call_s)
    assert asked == [f"--benchmark_min_time={calls}x"]
