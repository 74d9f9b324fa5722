"""One cache serves all that compile: nothing is compiled twice, and no failure of the machine is given out again."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import iree_cases
import numpy as np
import pytest

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.compile_result import failed
from mlir_sched.compiler.pool import CompileRequest
from mlir_sched.emission.final_measurement import compile_scripts
from mlir_sched.errors import FailureClass
from mlir_sched.evaluation import compiled_code
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.runner import RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task

REFUSED = failed(FailureClass.COMPILE_ERROR, "an op is not legal", 0.1)
CRASHED = failed(FailureClass.COMPILE_CRASH, "killed by SIGSEGV", 0.1)
FULL = failed(FailureClass.COMPILE_ERROR, "cannot write a.o: No space left on device", 0.1)


class Pool(CompilerPool):
    """Stands for a pool of two compiler processes, which end the last job first; notes every request.

    Attributes:
        requests: Per request the scripts, and for untuned code the sources.
        failing: Results by script or source, each for one time; an exception is raised.
    """

    def __init__(self, flags: tuple[str, ...] = (), chain_length: int = 0) -> None:
        super().__init__(flags, workers=2, chain_length=chain_length)
        self.requests: list[list[str]] = []
        self.failing: dict[str, CompileResult | Exception] = {}

    def compile_all(self, candidates: Sequence[CompileRequest]) -> Generator[tuple[int, CompileResult], None, None]:
        texts = [candidate.script or candidate.source for candidate in candidates]
        if texts:
            self.requests.append(texts)
        for index, text in reversed(list(enumerate(texts))):
            result = self.failing.pop(text, None) or CompileResult(text.encode(), None, text, 0.0)
            if isinstance(result, Exception):
                raise result
            yield index, result


@pytest.fixture
def pool() -> Pool:
    return Pool()


def task_named(name: str) -> Task:
    return Task(name, name, 1, f"source of {name}", (), (), None, "", ())


A, B, C, D, E = (task_named(name) for name in "abcde")


def asked(code: CompiledCode, pool: CompilerPool, *scripts: str, task: Task = A) -> list[CompileResult]:
    """Return the code of a task with scripts."""
    found = dict(code.of(pool, [(task, script) for script in scripts]))
    return [found[index] for index in range(len(scripts))]


def test_what_one_asker_had_compiled_another_gets(pool: Pool) -> None:
    code, other = CompiledCode(), Pool()
    first = asked(code, pool, "x", "y")
    assert asked(code, other, "y", "z", "x") == [first[1], *asked(code, other, "z"), first[0]]
    assert (pool.requests, other.requests) == ([["x", "y"]], [["z"]])


def test_what_is_asked_for_twice_at_a_time_is_compiled_once(pool: Pool) -> None:
    found = asked(CompiledCode(), pool, "x", "y", "x")
    assert [result.vmfb for result in found] == [b"x", b"y", b"x"]
    assert pool.requests == [["x", "y"]]


@pytest.mark.parametrize(
    ("flags", "chain_length", "task"),
    [(("-O3",), 0, A), ((), 16, A), ((), 0, B)],
    ids=["other flags", "a chain", "another task"],
)
def test_other_code_is_not_taken_for_it(flags: tuple[str, ...], chain_length: int, task: Task, pool: Pool) -> None:
    code, other = CompiledCode(), Pool(flags, chain_length)
    for each, of in ((pool, A), (other, task)):
        asked(code, each, "x", task=of)
        code.untuned(each, of)
    assert (pool.requests, other.requests) == ([["x"], [A.source]], [["x"], [task.source]])


def test_as_many_tasks_are_compiled_together_as_there_are_processes(pool: Pool) -> None:
    code, tasks = CompiledCode(), (A, B, C, D, E)
    found = [code.untuned(pool, task, tasks[place:]).binary_hash for place, task in enumerate(tasks, 1)]
    assert found == [task.source for task in tasks]
    assert pool.requests == [[A.source, B.source], [C.source, D.source], [E.source]]


def test_untuned_code_is_compiled_ahead_where_that_was_not_tried(pool: Pool) -> None:
    code = CompiledCode()
    pool.failing[B.source] = CRASHED
    code.untuned(pool, A, [B, C])
    code.compile_untuned(pool, [B, C, D], 1)
    assert pool.requests[1:] == [[C.source]], "what the machine may have failed at waits until it is asked for"
    assert code.untuned(pool, B, [C, D]).vmfb == B.source.encode()
    assert pool.requests[2:] == [[B.source, D.source]]
    assert code.untuned(pool, C).vmfb == C.source.encode()
    assert len(pool.requests) == 3


@pytest.mark.parametrize(("failure", "again"), [(REFUSED, []), (CRASHED, [["x"]]), (FULL, [["x"]])])
def test_a_failure_that_may_be_the_machines_is_not_given_out_again(
    failure: CompileResult, again: list[list[str]], pool: Pool
) -> None:
    code = CompiledCode()
    pool.failing["x"] = failure
    assert asked(code, pool, "x", "y")[0] is failure
    assert (asked(code, pool, "y", "x")[1].failure is None) == bool(again)
    assert pool.requests == [["x", "y"], *again]


def test_what_was_done_before_the_machine_failed_is_there(pool: Pool) -> None:
    code = CompiledCode()
    pool.failing["x"] = OSError("no process")
    with pytest.raises(OSError, match="no process"):
        asked(code, pool, "w", "x", "y")
    assert [result.vmfb for result in asked(code, pool, "w", "x", "y")] == [b"w", b"x", b"y"]
    assert pool.requests[1:] == [["w", "x"]]


def test_who_stops_early_leaves_the_rest_to_others(pool: Pool) -> None:
    code = CompiledCode()
    asked(code, pool, "x")
    for scripts in (["x", "y"], ["y", "z"]):
        for _ in code.of(pool, [(A, script) for script in scripts]):
            break  # after what was there, then after what was compiled first
    assert [result.vmfb for result in asked(code, pool, "y", "z")] == [b"y", b"z"]
    assert pool.requests == [["x"], ["y", "z"], ["y"]]


class SlowPool(Pool):
    """A pool whose jobs begin when they may."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_go_on = Event(), Event()

    def compile_all(self, candidates: Sequence[CompileRequest]) -> Generator[tuple[int, CompileResult], None, None]:
        self.begun.set()
        assert self.may_go_on.wait(30)
        yield from super().compile_all(candidates)


@contextmanager
def two_askers(code: CompiledCode, slow: SlowPool, pool: Pool) -> Iterator[Future[list[CompileResult]]]:
    """Yield what a thread gets for two scripts, of which another thread has the first compiled by a slow pool."""
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(lambda: asked(code, slow, "x"))
        assert slow.begun.wait(30)
        second = threads.submit(lambda: asked(code, pool, "x", "y"))
        while not (pool.requests or second.done()):
            pass  # until the second thread has nothing to do but to wait
        assert not second.done()
        slow.may_go_on.set()
        yield second
        first.exception()


def test_code_that_is_being_compiled_is_waited_for(pool: Pool) -> None:
    with two_askers(CompiledCode(), slow := SlowPool(), pool) as second:
        assert [result.vmfb for result in second.result(30)] == [b"x", b"y"]
    assert (slow.requests, pool.requests) == ([["x"]], [["y"]])


@pytest.mark.parametrize("end", [OSError("no process"), CRASHED])
def test_code_that_is_waited_for_in_vain_is_compiled_after_all(end: OSError | CompileResult, pool: Pool) -> None:
    slow = SlowPool()
    slow.failing["x"] = end
    with two_askers(CompiledCode(), slow, pool) as second:
        assert [result.vmfb for result in second.result(30)] == [b"x", b"y"]
    assert (slow.requests, pool.requests) == ([["x"]], [["y"], ["x"]])


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let three results stay as the latest."""
    monkeypatch.setattr(compiled_code, "LATEST", 3)


@pytest.mark.usefixtures("short")
def test_the_latest_results_stay(pool: Pool) -> None:
    code = CompiledCode()
    for script in "wxyzy":
        asked(code, pool, script)
    asked(code, pool, "x", "y", "z")
    assert len(pool.requests) == 4
    asked(code, pool, "w")
    assert pool.requests[4:] == [["w"]]


@pytest.mark.usefixtures("short")
def test_the_fastest_stay_in_whatever_order_they_are_measured(pool: Pool) -> None:
    code, ratios = CompiledCode(2), {"s": 1.5, "t": 3.0, "u": 0.5, "v": 2.0, "w": 1.0}
    for each in (A, B):
        code.untuned(pool, each)
        code.keep(pool, each, None, 1.0)
        for script, ratio in ratios.items():
            asked(code, pool, script, task=each)
            code.keep(pool, each, script, ratio)
    asked(code, pool, "x", "y", "z", task=C)
    pool.requests.clear()
    for each in (A, B):
        code.untuned(pool, each)
        asked(code, pool, "t", "v", task=each)
    assert pool.requests == []
    asked(code, pool, "s", "u", "w")
    assert pool.requests == [["s", "u", "w"]]


@pytest.mark.parametrize(("fastest", "left"), [(1, ["y"]), (0, ["x", "y"])])
def test_where_the_machine_failed_only_what_was_measured_stays(fastest: int, left: list[str], pool: Pool) -> None:
    code = CompiledCode(fastest)
    for measured, passing in ((A, "y"), (B, "z")):
        code.untuned(pool, measured)
        code.keep(pool, measured, None, 1.0)
        asked(code, pool, "x", passing, task=measured)
        code.keep(pool, measured, "x", 2.0)
    code.untuned(pool, C)
    code.forget()
    pool.requests.clear()
    code.untuned(pool, A)
    asked(code, pool, "x", "y")
    code.untuned(pool, C)
    assert pool.requests == [left, [C.source]]


@pytest.mark.promise
@pytest.mark.parametrize("device", [True, False], ids=["with a device", "without a device"])
def test_an_evaluator_forgets_what_was_not_measured_with_its_processes(
    device: bool, pool: Pool, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.evaluation.estimating.GpuTimes", lambda _: None)
    code = CompiledCode()
    with CompileAndRun((), code=code) if device else CompileAndAssemble((), here, code=code) as evaluator:
        asked(code, pool, "x")
        evaluator.renew()
        asked(code, pool, "x")
    assert pool.requests == [["x"], ["x"]]


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return iree_cases.task_of(tmp_path_factory.mktemp("matmul"), iree_cases.MATMUL)


@pytest.mark.promise
def test_finalists_get_the_code_of_the_search_which_is_that_of_the_library(matmul: Task, here: Target) -> None:
    assert matmul.dispatch is not None
    space, code, options = DesignSpace(Space.default(here), matmul.dispatch, here), CompiledCode(1), RunnerOptions()
    trace = space.sample(np.random.default_rng(0))
    with CompileAndRun(matmul.flags, options, workers=1, code=code) as evaluator:
        ((_, outcome),) = evaluator.evaluate(matmul, [space.script(trace)], {})
        evaluator.renew()
    assert outcome.timing is not None, outcome.failure
    with CompilerPool(matmul.flags, workers=1, chain_length=options.chain_length) as pool:
        compiled = dict(pool.compile(matmul.source, [None, space.script(trace, "tuned_0_matmul")], matmul.constants))
    idle = Pool(matmul.flags, options.chain_length)
    ((untuned, found),) = compile_scripts([(matmul, [space.script(trace)])], idle, code)
    assert idle.requests == []
    assert (found.code, found.binary_hash) == (compiled[1].code, compiled[1].binary_hash)
    assert (untuned.code, untuned.binary_hash) == (compiled[0].code, compiled[0].binary_hash)
    assert found.code != untuned.code
