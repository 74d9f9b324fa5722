"""Untuned code is compiled ahead, for as many tasks at a time as there are compiler processes."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.pool import Candidate
from mlir_sched.evaluation.untuned_code import UntunedCode
from mlir_sched.tasks.task import Task


class TwoWorkers(CompilerPool):
    """Stands for a pool of two compiler processes; notes the sources of every request, and all scripts."""

    def __init__(self) -> None:
        super().__init__((), workers=2)
        self.requests: list[list[str]] = []
        self.scripts: list[str] = []

    def compile_all(self, candidates: Sequence[Candidate]) -> Generator[tuple[int, CompileResult], None, None]:
        self.requests.append([candidate.source for candidate in candidates])
        self.scripts += [candidate.script for candidate in candidates if candidate.script is not None]
        for index, candidate in reversed(list(enumerate(candidates))):
            yield index, CompileResult(candidate.source.encode(), None, candidate.script or candidate.source, 0.0)


def task_named(name: str) -> Task:
    return Task(name, name, 1, f"source of {name}", (), (), None, "", ())


def test_as_many_tasks_are_compiled_together_as_there_are_processes() -> None:
    pool, tasks = TwoWorkers(), [task_named(name) for name in "abcde"]
    code = UntunedCode(pool)

    found = [code.of(task, tasks[place:]).binary_hash for place, task in enumerate(tasks, 1)]

    assert found == [task.source for task in tasks]
    assert pool.requests == [["source of a", "source of b"], ["source of c", "source of d"], ["source of e"]]
    assert pool.scripts == []


def test_what_is_there_is_not_compiled_again() -> None:
    pool, tasks = TwoWorkers(), [task_named(name) for name in "abcd"]
    code = UntunedCode(pool)
    code.of(tasks[0], tasks[1:])
    code.compile(tasks[1:], 1)
    assert pool.requests[1:] == [["source of c"]]
    assert pool.scripts == []


def test_a_task_that_was_skipped_stays_known() -> None:
    pool, (a, b, c) = TwoWorkers(), [task_named(name) for name in "abc"]
    code = UntunedCode(pool)

    code.of(a, [b, c])
    code.of(c)
    assert code.of(b).vmfb == b"source of b"
    assert pool.requests == [["source of a", "source of b"], ["source of c"]]
    assert pool.scripts == []


def test_untuned_code_that_is_missing_is_compiled_with_scripts() -> None:
    pool, task = TwoWorkers(), task_named("a")
    code = UntunedCode(pool)

    first = {index: result.binary_hash for index, result in code.beside(task, ["x", "y"])}
    assert first == {0: "x", 1: "y"}, "a result per script, and none for the untuned code"
    assert {index: result.binary_hash for index, result in code.beside(task, ["z"])} == {0: "z"}
    assert code.of(task).binary_hash == task.source
    assert [len(request) for request in pool.requests] == [3, 1]
    assert pool.scripts == ["x", "y", "z"]
