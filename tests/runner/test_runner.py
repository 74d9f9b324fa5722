"""The runner against planted wrong programs (data/runner/*.mlir), each standing for a wrong schedule."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import psutil
import pytest
from iree.compiler.tools import compile_str
from iree_cases import FLAGS
from measured_programs import CHECKS, SOURCES, SQUARE, failure_of, only
from rule_ops import dispatch
from rule_ops import matmul as matmul_op

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.payload import TensorSpec
from mlir_sched.processes import child
from mlir_sched.runner import (
    BaselineError,
    CheckOptions,
    RacingOptions,
    Runner,
    RunnerOptions,
    RunResult,
    TimeoutOptions,
    UnverifiableError,
    choose_cores,
    client,
    protocol,
)
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch, checks_for_model
from mlir_sched.runner.cores import other_cores
from mlir_sched.runner.program import Program
from mlir_sched.runner.protocol import RequestFailed
from mlir_sched.runner.race import Contender
from mlir_sched.runner.runner import LOOKS
from mlir_sched.runner.statistics import Interval
from mlir_sched.runner.worker.spinning_threads import LOWEST
from mlir_sched.targets.target import LOCAL

pytestmark = pytest.mark.alone

ROWS, SUM = TensorSpec((32, 65536), "f32"), TensorSpec((65536,), "f32")
VECTOR = TensorSpec((1000,), "f32")
Compiled: TypeAlias = Callable[[str], Program]
"""From the name of a source to its program."""
FAST = RunnerOptions(racing=RacingOptions(budget_s=0.05), checks=CheckOptions(data_race_calls=40))


@pytest.fixture(scope="session")
def compiled() -> Callable[..., bytes]:
    """Return a function from a source's name, and a type in place of f32, to its program; each is compiled once."""
    known: dict[tuple[str, str], bytes] = {}

    def compile_program(name: str, element_type: str = "f32") -> bytes:
        if (name, element_type) not in known:
            flags = ["--compile-from=flow"] if name == "race" else FLAGS
            text = (SOURCES / f"{name}.mlir").read_text().replace("f32", element_type)
            if element_type.startswith("i"):
                text = text.replace("addf", "addi").replace("subf", "subi")
            known[name, element_type] = compile_str(text, extra_args=flags)
        return known[name, element_type]

    return compile_program


@pytest.fixture(scope="session")
def matmul(compiled: Callable[[str], bytes]) -> Compiled:
    return lambda name: Program(compiled(name), "task", (SQUARE, SQUARE), (SQUARE,), True)


@pytest.fixture(scope="session")
def model(compiled: Callable[[str], bytes]) -> Compiled:
    return lambda name: Program(compiled(name), "main", (VECTOR,), (VECTOR,), False)


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(FAST) as made:
        yield made


def timing_of(result: RunResult) -> Timing:
    assert result.timing is not None
    return result.timing


def requests_of(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Return a list to which every request to a runner's process is added."""
    asked, ask = list[object](), client.RunnerClient.ask

    def noted(self: client.RunnerClient, request: object, *limits: Any) -> object:
        asked.append(request)
        return ask(self, request, *limits)

    monkeypatch.setattr(client.RunnerClient, "ask", noted)
    return asked


def pid_of(runner: Runner) -> int:
    assert runner._client.pid is not None
    return runner._client.pid


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


@pytest.mark.parametrize(("telling", "again"), [((0,), [0]), ((1,), [0, 1]), ((0, 1), [0, 1])])
def test_what_is_checked_again_and_for_races_tells_wrong_results_from_right_ones(
    monkeypatch: pytest.MonkeyPatch, telling: tuple[int, ...], again: list[int]
) -> None:
    verified: list[protocol.Verify] = []

    def ask(_: client.RunnerClient, request: object, *limits: object) -> object:
        del limits
        verified.extend([request] if isinstance(request, protocol.Verify) else [])
        if isinstance(request, protocol.SamplePairs):
            return (protocol.Pair(1e-3, 1e-3, quiet=True),) * request.pairs
        if isinstance(request, protocol.Prepare):
            return protocol.Prepared(1e-3, 1e-3, None, telling=telling)
        return 1e-3 if isinstance(request, protocol.Warm) else None

    monkeypatch.setattr(client.RunnerClient, "ask", ask)
    monkeypatch.setattr(client.RunnerClient, "start", lambda _: None)
    program = Program(b"", "main", (VECTOR,), (VECTOR,), False)
    with Runner(RunnerOptions(checks=CheckOptions(data_race_calls=3))) as runner:
        monkeypatch.setattr(runner, "_check_races", True)
        only(runner, program, program)
    racing = [telling[number % len(telling)] for number in range(3)]
    assert [request.check for request in verified] == [*range(len(CHECKS)), *again, *racing, *again]


def test_races_are_looked_for_wherever_there_are_two_cores() -> None:
    many = Runner(RunnerOptions(checks=CheckOptions(data_race_calls=3)))
    few = Runner(RunnerOptions(checks=CheckOptions(data_race_calls=3, data_race_threads=1)))
    several = len(os.sched_getaffinity(0)) > 1
    assert [request.races for request in many._race_checks(1)] == [True] * 3 * several
    assert few._race_checks(1) == []


def test_a_candidate_that_only_looked_hopeless_gets_all_checks(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_hopeless_s", lambda handle, check_s: check_s)
    monkeypatch.setattr(Contender, "ratio", lambda contender, fewest=1: Interval(1.0, 1.0, 1.0, 1.0, 1))
    result = only(runner, matmul("right"), matmul("right"))
    assert timing_of(result).samples == 1
    assert result.verdict is Verdict.RIGHT
    assert failure_of(only(runner, matmul("right"), matmul("stale_state"))).kind == FailureClass.WRONG_RESULT


def test_a_hopeless_candidate_is_timed_once_and_its_verdict_is_not_checked(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_hopeless_s", lambda handle, check_s: check_s)
    monkeypatch.setattr(Contender, "ratio", lambda contender, fewest=1: Interval(0.1, 0.1, 0.1, 0.1, 1))
    result = only(runner, matmul("right"), matmul("right"))
    assert timing_of(result).samples == 1
    assert result.verdict is Verdict.NOT_CHECKED
    assert result.valid is None
    assert result.why_not_valid == "its numbers were not checked"


def test_a_hopeless_candidate_gets_all_checks_where_numbers_are_claimed(
    matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Runner, "_hopeless_s", lambda runner, handle, check_s: check_s)
    monkeypatch.setattr(Contender, "ratio", lambda contender, fewest=1: Interval(0.1, 0.1, 0.1, 0.1, 1))
    for options in (RunnerOptions.final(LOCAL), FAST.first_look):
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
    monkeypatch.setattr(runner, "_call_s_in", lambda check_s: call_s)
    assert only(runner, matmul("right"), matmul("right")).verdict is Verdict.RIGHT
    assert [type(request) for request in asked].count(protocol.Warm) == warmed


def test_programs_that_hang_or_crash_cost_only_themselves(runner: Runner, matmul: Compiled) -> None:
    names = ["right", "endless_loop", "right", "out_of_bounds", "right"]
    baseline, results = runner.measure(matmul("right"), [matmul(name) for name in names], CHECKS)
    kinds = [result.failure.kind if result.failure else None for result in results]
    assert kinds == [None, FailureClass.RUN_TIMEOUT, None, FailureClass.RUN_CRASH, None]
    assert "SIGSEGV" in failure_of(results[3]).message
    assert baseline.samples >= FAST.racing.min_pairs
    assert baseline.ratio == 1.0


def test_process_killed_while_a_program_runs_is_a_crash_of_that_program(matmul: Compiled) -> None:
    with Runner(RunnerOptions(timeouts=TimeoutOptions(call_s=60.0))) as runner:
        runner.measure(matmul("right"), [], CHECKS)
        killer = threading.Timer(0.5, os.kill, (pid_of(runner), signal.SIGKILL))
        killer.start()
        failure = failure_of(only(runner, matmul("right"), matmul("endless_loop")))
    assert failure.kind == FailureClass.RUN_CRASH
    assert "SIGKILL" in failure.message


def test_innocent_program_is_tried_again_when_another_damaged_the_process(
    runner: Runner, matmul: Compiled, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(runner, matmul("right"), matmul("right"))
    check = runner._check

    def check_in_damaged_process(handle: int, program: Program, *, whole: bool) -> Failure | None:
        monkeypatch.setattr(runner, "_check", check)
        os.kill(pid_of(runner), signal.SIGSEGV)
        return check(handle, program, whole=whole)

    monkeypatch.setattr(runner, "_check", check_in_damaged_process)
    assert only(runner, matmul("right"), matmul("right")).failure is None


def test_process_killed_between_batches_goes_unnoticed(runner: Runner, matmul: Compiled) -> None:
    only(runner, matmul("right"), matmul("right"))
    os.kill(pid_of(runner), signal.SIGKILL)
    assert only(runner, matmul("right"), matmul("right")).failure is None


def test_program_that_does_not_load_is_a_run_error(runner: Runner, matmul: Compiled) -> None:
    broken = Program(b"not a module at all", "task", (SQUARE, SQUARE), (SQUARE,), True)
    missing = Program(matmul("right").vmfb, "no_such_entry", (SQUARE, SQUARE), (SQUARE,), True)
    for program in (broken, missing):
        assert failure_of(only(runner, matmul("right"), program)).kind == FailureClass.RUN_ERROR


def test_whole_programs_return_their_results(runner: Runner, model: Compiled) -> None:
    checks = checks_for_model((VECTOR,))
    assert only(runner, model("model_scale"), model("model_scale"), checks).failure is None
    failure = failure_of(only(runner, model("model_scale"), model("model_scale_part"), checks))
    assert failure.kind == FailureClass.WRONG_RESULT


def test_a_program_that_needs_too_much_memory_is_stopped(model: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "child_memory_bytes", lambda: 600 << 20)
    with Runner(replace(FAST, timeouts=TimeoutOptions(call_s=60.0))) as runner:
        failure = failure_of(only(runner, model("model_scale"), model("hungry"), checks_for_model((VECTOR,))))
        assert failure == Failure(FailureClass.RUN_MEMORY, "stopped: it used more than 600 MiB of memory")
        assert only(runner, model("model_scale"), model("model_scale"), checks_for_model((VECTOR,))).failure is None


def test_a_mistake_of_ours_is_told_from_a_programs_failure(runner: Runner) -> None:
    with pytest.raises(RequestFailed) as failed:
        runner._client.ask("no request", 10)
    assert failed.value.failure.kind == FailureClass.INTERNAL_ERROR
    assert failed.value.failure.message.endswith("TypeError: unknown request str\n")


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("bytes([5])", "stopped after 1 s"),
        ("(90).to_bytes(8, 'little') + b'half'", "stopped after 1 s"),
        ("(4).to_bytes(8, 'little') + b'junk'", "the runner process is damaged"),
    ],
)
def test_a_process_that_does_not_finish_its_message_is_given_up(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, said: str, message: str
) -> None:
    program = f"import os, sys, time; os.write(int(sys.argv[1]), {said}); time.sleep(600)"
    monkeypatch.setattr(child, "python_command", lambda _, *rest, python: [python, "-c", program, *rest])
    monkeypatch.setattr(client, "START_TIMEOUT_S", 1.0)
    broken = client.RunnerClient(runner._client._setup)
    with pytest.raises(client.RunnerStartError, match=message):
        broken.start()
    assert broken.pid is None


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


def test_no_core_is_spare_when_all_are_used() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    assert other_cores(allowed) == ()
    assert not set(other_cores(allowed[:1])) & set(allowed[:1])


def test_cores_are_allowed_and_as_many_as_asked() -> None:
    allowed = os.sched_getaffinity(0)
    assert set(choose_cores(len(allowed))) == allowed
    for threads in (0, len(allowed) + 1):
        with pytest.raises(ValueError, match="threads must be"):
            choose_cores(threads)


ORPHAN = """
import sys, pathlib, threading
from mlir_sched.runner import *
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import *
square = TensorSpec((64, 64), "f32")
right, hang = (Program(pathlib.Path(p).read_bytes(), "task", (square,) * 2, (square,), True) for p in sys.argv[1:])
runner = Runner(RunnerOptions(timeouts=TimeoutOptions(call_s=1e3)))
checks = (Check(InputKind.EXACT, 1),)
runner.measure(right, [], checks)
print(runner._client.pid, flush=True)
runner.measure(right, [hang], checks)
"""


def test_process_dies_with_a_killed_parent_even_while_a_program_hangs(
    tmp_path: Path, compiled: Callable[[str], bytes]
) -> None:
    paths = [tmp_path / name for name in ("right", "endless_loop")]
    for path in paths:
        path.write_bytes(compiled(path.name))
    with subprocess.Popen([sys.executable, "-c", ORPHAN, *map(str, paths)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        used = child.cpu_times().user
        deadline = time.monotonic() + 30
        while child.cpu_times().user < used + 0.3 and time.monotonic() < deadline:
            time.sleep(0.02)  # until the endless loop is under way
        parent.kill()
    psutil.wait_procs([child], timeout=30)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.landing
def test_memory_stays_bounded_over_many_candidates(runner: Runner, matmul: Compiled) -> None:
    def resident() -> float:
        return float(psutil.Process(runner._client.pid).memory_info().rss)

    program, wrong = matmul("right"), matmul("one_wrong_element")
    for _ in range(3):
        runner.measure(program, [wrong] * 50, CHECKS)
    before = resident()
    for _ in range(10):
        runner.measure(program, [wrong] * 50, CHECKS)
    assert resident() - before < 4 << 20
