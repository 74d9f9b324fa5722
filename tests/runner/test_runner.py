"""The runner against planted wrong programs (data/runner/*.mlir), each standing for a wrong schedule."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from iree.compiler.tools import compile_str
from measured_programs import CHECKS, FAST, SOURCES, SQUARE, VECTOR, Compiled, failure_of, only
from rule_ops import dispatch
from rule_ops import matmul as matmul_op

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.payload import TensorSpec
from mlir_sched.runner import (
    BaselineError,
    CheckOptions,
    Places,
    RacingOptions,
    Runner,
    RunnerOptions,
    RunResult,
    TimeoutOptions,
    UnverifiableError,
    client,
    protocol,
)
from mlir_sched.runner.checking import Checking
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch, checks_for_model
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import RequestFailed
from mlir_sched.runner.race import Contender
from mlir_sched.runner.runner import LOOKS
from mlir_sched.runner.statistics import Interval
from mlir_sched.runner.worker.spinning_threads import LOWEST
from mlir_sched.targets.target import LOCAL

pytestmark = pytest.mark.alone

ROWS, SUM = TensorSpec((32, 65536), "f32"), TensorSpec((65536,), "f32")


def timing_of(result: RunResult) -> Timing:
    assert result.timing is not None
    return result.timing


def competing(runner: Runner, baseline: Program, candidate: Program, places: Places) -> RunResult:
    _, (result,) = runner.measure(baseline, [candidate], CHECKS, places=places)
    return result


def requests_of(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which every request to a runner's process is added."""
    asked, ask = list[object](), client.RunnerClient.ask

    def noted(self: client.RunnerClient, request: object, *limits: Any) -> object:
        asked.append(request)
        return ask(self, request, *limits)

    monkeypatch.setattr(client.RunnerClient, "ask", noted)
    return asked


@pytest.mark.parametrize(
    ("name", "explanation"),
    [
        ("missing_fill", "4096 of 4096 elements never written or computed from unwritten memory"),
        ("skipped_tail", "256 of 4096 elements never written"),
        ("overwritten_input", "input 0 was overwritten"),
        ("one_wrong_element", "1 of 4096 elements differ where equality is due, first at [17, 33]"),
        ("right_for_zeros", "elements differ where equality is due"),
        ("stale_state", "elements are too far off"),
        ("wrong_later", "after timing"),
    ],
)
def test_wrong_program_is_rejected_with_the_reason(
    runner: Runner, matmul: Compiled, name: str, explanation: str
) -> None:
    result = only(runner, matmul("right"), matmul(name))
    assert result.timing is None
    assert failure_of(result).kind == FailureClass.WRONG_RESULT
    assert explanation in failure_of(result).message


@pytest.mark.landing
def test_what_the_baseline_overwrites_may_be_overwritten(runner: Runner, compiled: Callable[[str], bytes]) -> None:
    in_place, apart, twice = (
        Program(compiled(name), "main", (SQUARE, SQUARE), (SQUARE,), False)
        for name in ("accumulating", "accumulating_apart", "accumulating_twice")
    )
    _, results = runner.measure(in_place, [in_place, apart, twice], CHECKS)
    assert [result.failure and result.failure.kind for result in results] == [None, None, FailureClass.WRONG_RESULT]
    assert "elements differ where equality is due" in failure_of(results[2]).message
    failure = failure_of(only(runner, apart, in_place))
    assert "input 1 was overwritten" in failure.message


def test_a_program_may_return_its_argument(runner: Runner, compiled: Callable[[str], bytes]) -> None:
    program = Program(compiled("returned_argument"), "main", (VECTOR,), (VECTOR, VECTOR), False)
    assert only(runner, program, program).failure is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a race needs two cores")
def test_race_that_one_thread_hides_is_rejected(runner: Runner, compiled: Callable[[str], bytes]) -> None:
    free, race = (Program(compiled(name), "task", (ROWS,), (SUM,), True) for name in ("race_free", "race"))
    assert only(runner, free, free).failure is None
    failure = failure_of(only(runner, free, race))
    assert failure.kind == FailureClass.WRONG_RESULT
    assert "threads" in failure.message


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a race needs two cores")
def test_a_program_with_a_race_does_not_repeat_its_results(runner: Runner, compiled: Callable[[str], bytes]) -> None:
    free, race = (Program(compiled(name), "task", (ROWS,), (SUM,), True) for name in ("race_free", "race"))
    assert runner.repeat(free, CHECKS) is None
    failure = runner.repeat(race, CHECKS)
    assert failure is not None
    assert "threads: " in failure.message


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a race needs two cores")
def test_race_is_rejected_where_programs_run_on_several_threads(compiled: Callable[[str], bytes]) -> None:
    free, race = (Program(compiled(name), "task", (ROWS,), (SUM,), True) for name in ("race_free", "race"))
    with Runner(replace(FAST, threads=2)) as runner:
        assert only(runner, free, free).failure is None
        assert failure_of(only(runner, free, race)).kind == FailureClass.WRONG_RESULT


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a race needs two cores")
def test_a_program_for_the_calling_thread_runs_there(compiled: Callable[[str], bytes], matmul: Compiled) -> None:
    free, race = (Program(compiled(name), "task", (ROWS,), (SUM,), True) for name in ("race_free", "race"))
    right, wrong = (replace(matmul(name), local_sync=True) for name in ("right", "one_wrong_element"))
    with Runner(replace(FAST, threads=2)) as runner:
        assert only(runner, free, replace(race, local_sync=True)).failure is None, "one thread has no race"
        _, (first, second) = runner.measure(matmul("right"), [right, wrong], CHECKS)
    assert timing_of(first).samples >= FAST.racing.min_pairs
    assert failure_of(second).kind == FailureClass.WRONG_RESULT


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_element_written_behind_the_result_is_rejected(threads: int) -> None:
    text = (SOURCES / "past_end.mlir").read_text()
    right, past_end = (
        Program(compile_str(source, extra_args=["--compile-from=flow"]), "task", (VECTOR,), (VECTOR,), True)
        for source in (text.replace("constant 1001", "constant 1000"), text)
    )
    with Runner(replace(FAST, threads=threads)) as runner:
        before, wrong, after = runner.check(right, [right, past_end, right], CHECKS)
    assert before is after is None
    assert wrong == Failure(
        FailureClass.WRONG_RESULT, "exact inputs: 4 bytes behind the end of output 0 were overwritten"
    )


def answered(monkeypatch: pytest.MonkeyPatch, telling: tuple[int, ...]) -> list[object]:
    """Have all requests answered as for right programs of one millisecond, and return those that are asked.

    Args:
        telling: The checks that tell wrong results from right ones.
    """
    asked: list[object] = []

    def ask(_: client.RunnerClient, request: object, *limits: object) -> object:
        del limits
        asked.append(request)
        if isinstance(request, protocol.SamplePairs):
            return (protocol.Pair(1e-3, 1e-3, quiet=True),) * request.pairs
        if isinstance(request, protocol.Prepare):
            return protocol.Prepared(1e-3, 1e-3, None, telling=telling)
        return 1e-3 if isinstance(request, protocol.Warm) else None

    monkeypatch.setattr(client.RunnerClient, "ask", ask)
    monkeypatch.setattr(client.RunnerClient, "start", lambda _: None)
    return asked


def checks_in(requests: Sequence[object]) -> list[int]:
    """Return the numbers of the checks that requests ask for."""
    return [request.check for request in requests if isinstance(request, protocol.Verify)]


@pytest.mark.parametrize(("telling", "again"), [((0,), [0]), ((1,), [0, 1]), ((0, 1), [0, 1])])
def test_what_is_checked_again_and_for_races_tells_wrong_results_from_right_ones(
    monkeypatch: pytest.MonkeyPatch, telling: tuple[int, ...], again: list[int]
) -> None:
    asked = answered(monkeypatch, telling)
    program = Program(b"", "main", (VECTOR,), (VECTOR,), False)
    with Runner(RunnerOptions(checks=CheckOptions(data_race_calls=3))) as runner:
        monkeypatch.setattr(runner._checking, "_exposes_races", True)
        only(runner, program, program)
    racing = [telling[number % len(telling)] for number in range(3)]
    assert checks_in(asked) == [*range(len(CHECKS)), *again, *racing, *again]


@pytest.mark.parametrize("lost", [False, True])
@pytest.mark.parametrize(("telling", "first"), [((0,), [0]), ((1,), [0, 1]), ((0, 1), [0, 1])])
def test_a_candidate_that_competes_for_places_gets_its_first_checks_and_the_rest_where_it_may_win(
    monkeypatch: pytest.MonkeyPatch, telling: tuple[int, ...], first: list[int], lost: bool
) -> None:
    asked = answered(monkeypatch, telling)
    program = Program(b"", "main", (VECTOR,), (VECTOR,), False)
    with Runner(RunnerOptions(checks=CheckOptions(data_race_calls=1))) as runner:
        monkeypatch.setattr(runner._checking, "_exposes_races", True)
        result = competing(runner, program, program, Places(held=(2.0,) if lost else ()))
    sampled = next(i for i, request in enumerate(asked) if isinstance(request, protocol.SamplePairs))
    checks = [checks_in(asked[:sampled]), checks_in(asked[sampled:])]
    others = [index for index in range(len(CHECKS)) if index not in first]
    assert checks == [first, [] if lost else [*others, *first, telling[0], *first]]
    assert result.verdict is (Verdict.NOT_CHECKED if lost else Verdict.RIGHT)


WRONG = ("missing_fill", "skipped_tail", "overwritten_input", "one_wrong_element", "right_for_zeros", "stale_state")


def test_of_candidates_that_may_win_a_place_none_is_right_that_is_wrong(runner: Runner, matmul: Compiled) -> None:
    names = ("right", *WRONG, "wrong_later", "right")
    _, results = runner.measure(matmul("right"), [matmul(n) for n in names], CHECKS, places=Places(len(names)))
    assert [result.verdict for result in results] == [
        Verdict.WRONG if name in (*WRONG, "wrong_later") else Verdict.RIGHT for name in names
    ]


def test_candidates_that_win_no_place_are_known_to_be_wrong_or_to_be_unchecked(
    runner: Runner, matmul: Compiled
) -> None:
    names = ("right", *WRONG, "right")
    places = Places(1, (1000.0,))
    _, results = runner.measure(matmul("right"), [matmul(name) for name in names], CHECKS, places=places)
    right, stale = results[0], results[names.index("stale_state")]
    assert all(result.valid is None for result in results)
    assert right.verdict is stale.verdict is Verdict.NOT_CHECKED, "its first results are right"
    assert timing_of(right).samples >= 2
    found = {name for name, result in zip(names, results, strict=True) if result.verdict is Verdict.WRONG}
    assert found == set(WRONG) - {"stale_state"}


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="a race needs two cores")
def test_a_race_is_rejected_where_a_candidate_may_win_and_else_nothing_is_claimed(
    runner: Runner, compiled: Callable[[str], bytes]
) -> None:
    free, race = (Program(compiled(name), "task", (ROWS,), (SUM,), True) for name in ("race_free", "race"))
    assert failure_of(competing(runner, free, race, Places())).kind == FailureClass.WRONG_RESULT
    slow = competing(runner, free, race, Places(held=(1000.0,)))
    assert (slow.verdict, slow.failure, slow.valid) == (Verdict.NOT_CHECKED, None, None)


def test_races_are_looked_for_wherever_there_are_two_cores() -> None:
    many = Runner(RunnerOptions(checks=CheckOptions(data_race_calls=3)))
    few = Runner(RunnerOptions(checks=CheckOptions(data_race_calls=3, data_race_threads=1)))
    several = len(os.sched_getaffinity(0)) > 1
    assert [request.races for request in many._checking._race_checks(1)] == [True] * 3 * several
    assert few._checking._race_checks(1) == []


def test_a_candidate_that_only_looked_hopeless_gets_all_checks(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner._checking, "_hopeless_s", lambda handle, check_s: check_s)
    monkeypatch.setattr(Contender, "ratio", lambda contender, fewest=1: Interval(1.0, 1.0, 1.0, 1.0, 1))
    result = competing(runner, matmul("right"), matmul("right"), Places())
    assert timing_of(result).samples == 1
    assert result.verdict is Verdict.RIGHT
    stale = competing(runner, matmul("right"), matmul("stale_state"), Places())
    assert failure_of(stale).kind == FailureClass.WRONG_RESULT


def test_a_hopeless_candidate_is_timed_once_and_its_verdict_is_not_checked(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner._checking, "_hopeless_s", lambda handle, check_s: check_s)
    monkeypatch.setattr(Contender, "ratio", lambda contender, fewest=1: Interval(0.1, 0.1, 0.1, 0.1, 1))
    result = competing(runner, matmul("right"), matmul("right"), Places())
    assert timing_of(result).samples == 1
    assert result.verdict is Verdict.NOT_CHECKED
    assert result.valid is None
    assert result.why_not_valid == "its numbers were not checked"


def test_a_hopeless_candidate_gets_all_checks_where_numbers_are_claimed(
    matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Checking, "_hopeless_s", lambda _, handle, check_s: check_s)
    monkeypatch.setattr(Contender, "ratio", lambda contender, fewest=1: Interval(0.1, 0.1, 0.1, 0.1, 1))
    for options in (RunnerOptions.final(LOCAL), FAST.first_look, FAST):
        with Runner(options) as whole:
            names = ("right", "stale_state")
            right, wrong = whole.measure(matmul("right"), [matmul(name) for name in names], CHECKS)[1]
        assert right.verdict is Verdict.RIGHT
        assert timing_of(right).samples == 1
        assert wrong.verdict is Verdict.WRONG
    with Runner(FAST) as briefly:
        assert briefly.check(matmul("right"), [matmul("stale_state")], CHECKS) != (None,)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("element_type", ["f16", "bf16"])
def test_wrong_products_in_narrow_types_are_rejected(
    runner: Runner, compiled: Callable[[str, str], bytes], element_type: str
) -> None:
    square, product = TensorSpec((64, 64), element_type), dispatch(matmul_op(64, element_type, m=64, n=64))

    def program(name: str) -> Program:
        return Program(compiled(name, element_type), "task", (square, square), (square,), True)

    names = ("right", "skipped_tail", "missing_fill", "one_wrong_element", "right_for_zeros", "stale_state")
    _, results = runner.measure(program("right"), [program(name) for name in names], checks_for_dispatch(product))
    kinds = [result.failure and result.failure.kind for result in results]
    assert kinds == [None, *[FailureClass.WRONG_RESULT] * 5]
    assert results[0].verdict is Verdict.RIGHT


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("element_type", ["f16", "bf16", "i8"])
def test_wrong_whole_programs_are_rejected_in_every_type(
    runner: Runner, compiled: Callable[[str, str], bytes], element_type: str
) -> None:
    vector = TensorSpec((1000,), element_type)

    def program(name: str) -> Program:
        return Program(compiled(name, element_type), "main", (vector,), (vector,), False)

    names = ("model_scale", "model_scale_part", "model_zeros")
    _, results = runner.measure(program(names[0]), [program(name) for name in names], checks_for_model((vector,)))
    assert [result.failure and result.failure.kind for result in results] == [None, *[FailureClass.WRONG_RESULT] * 2]


def test_a_model_has_time_to_be_handed_over_with_its_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    patience: list[float] = []

    def ask(_: client.RunnerClient, request: object, timeout_s: float, *_following: object) -> protocol.Prepared:
        if isinstance(request, protocol.Load):
            patience.append(timeout_s)
            raise RequestFailed(Failure(FailureClass.RUN_TIMEOUT, "no result"))
        return protocol.Prepared(1e-3, 1e-3, None)

    monkeypatch.setattr(client.RunnerClient, "ask", ask)
    monkeypatch.setattr(client.RunnerClient, "start", lambda _: None)
    small, large = (Program(bytes(size), "main", (VECTOR,), (VECTOR,), False) for size in (10_000, 400_000_000))
    with Runner() as runner:
        runner.check(small, [small, large], checks_for_model((VECTOR,)))
    assert patience[0] == pytest.approx(RunnerOptions().timeouts.bookkeeping_s, rel=0.01)
    assert patience[-1] - patience[0] == pytest.approx(20.0, rel=0.01)


def test_a_program_that_returns_one_constant_is_no_reference(runner: Runner, model: Compiled) -> None:
    with pytest.raises(UnverifiableError, match="cannot be verified: output 0 is not to be told from zeros"):
        runner.measure(model("model_zeros"), [], checks_for_model((VECTOR,)))


def test_right_program_is_timed(runner: Runner, matmul: Compiled) -> None:
    result = only(runner, matmul("right"), matmul("right"))
    assert result.failure is None
    assert result.verdict is Verdict.RIGHT
    timing = timing_of(result)
    assert 0 < timing.low_s <= timing.median_s <= timing.high_s
    assert timing.ratio_low <= timing.ratio <= timing.ratio_high
    assert timing.samples >= FAST.racing.min_pairs


@pytest.mark.parametrize(("options", "checks"), [(FAST, len(CHECKS) + 2), (FAST.first_look, len(CHECKS))])
def test_a_first_look_repeats_no_check(
    matmul: Compiled, monkeypatch: pytest.MonkeyPatch, options: RunnerOptions, checks: int
) -> None:
    asked = requests_of(monkeypatch)
    with Runner(replace(options, checks=replace(options.checks, data_race_calls=0))) as measuring:
        assert only(measuring, matmul("right"), matmul("right")).verdict is Verdict.RIGHT
    assert [type(request) for request in asked].count(protocol.Verify) == checks


@pytest.mark.parametrize(("call_s", "warmed"), [(0.0, 1), (0.5, 0)])
def test_a_program_whose_check_says_how_long_it_takes_is_not_warmed_up(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch, call_s: float, warmed: int
) -> None:
    asked = requests_of(monkeypatch)
    monkeypatch.setattr(runner._checking, "_call_s_in", lambda check_s: call_s)
    assert only(runner, matmul("right"), matmul("right")).verdict is Verdict.RIGHT
    assert [type(request) for request in asked].count(protocol.Warm) == warmed


def test_whole_programs_return_their_results(runner: Runner, model: Compiled) -> None:
    checks = checks_for_model((VECTOR,))
    assert only(runner, model("model_scale"), model("model_scale"), checks).failure is None
    failure = failure_of(only(runner, model("model_scale"), model("model_scale_part"), checks))
    assert failure.kind == FailureClass.WRONG_RESULT


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", ["missing_fill", "endless_loop", "out_of_bounds", "overwritten_input"])
def test_baseline_that_cannot_be_a_reference_is_an_error(matmul: Compiled, name: str) -> None:
    options = RunnerOptions(timeouts=TimeoutOptions(first_call_s=2.0))
    with Runner(options) as runner, pytest.raises(BaselineError):
        runner.measure(matmul(name), [], CHECKS)


def test_baseline_alone_is_timed(runner: Runner, matmul: Compiled) -> None:
    baseline, results = runner.measure(matmul("right"), [], CHECKS)
    assert results == ()
    assert baseline.samples >= FAST.racing.min_pairs


def test_equal_programs_are_about_equally_fast(matmul: Compiled) -> None:
    """A busy machine widens the intervals; what must not happen is a confident wrong ranking of most copies."""
    with Runner(RunnerOptions(racing=RacingOptions(budget_s=0.1))) as runner:
        _, results = runner.measure(matmul("right"), [matmul("right")] * 8, CHECKS)
    containing = sum(timing_of(r).ratio_low <= 1.02 and timing_of(r).ratio_high >= 0.98 for r in results)
    assert containing >= 5


def test_program_runs_on_several_pinned_threads(matmul: Compiled) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two cores")
    with Runner(RunnerOptions(threads=2, racing=RacingOptions(budget_s=0.05))) as runner:
        assert only(runner, matmul("right"), matmul("right")).failure is None
        threads = [t.id for t in psutil.Process(runner._client.pid).threads()]
        workers = [t for t in threads if _name(runner, t).startswith("iree-worker")]
        pinned = [tuple(os.sched_getaffinity(w)) for w in workers]
        yielding = [t for t in threads if os.getpriority(os.PRIO_PROCESS, t) == LOWEST]
    assert sorted(pinned) == [(core,) for core in runner.cores]
    assert len(yielding) == 1, "one thread times programs and yields to the workers"
    assert runner._client.pid not in yielding, "the main thread checks numbers and must not starve on a busy machine"
    assert not set(yielding) & set(workers)


def _name(runner: Runner, thread: int) -> str:
    return Path(f"/proc/{runner._client.pid}/task/{thread}/comm").read_text()


def test_noise_is_a_share_and_a_verdict(runner: Runner) -> None:
    noise = runner.noise(0.1)
    assert 0 <= noise.lost < 1
    assert noise.spread >= 0
    assert noise.verdict


def test_other_work_may_use_cores_that_do_not_disturb(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    quiet, drifting, disturbed = [1.0, 1.0, 1.0, 1.6], [1.0, 1.05, 1.8, 1.8], [1.5, 1.5, 1.5, 1.5]
    times = iter([quiet, drifting] * LOOKS + [quiet, disturbed] * LOOKS)
    monkeypatch.setattr(runner, "_kernel_times", lambda _: next(times))
    monkeypatch.setattr("mlir_sched.runner.runner.other_cores", lambda _: (min(os.sched_getaffinity(0)),))
    assert runner.spare_cores()
    assert not runner.spare_cores(), "they may be hardware threads of one core"
