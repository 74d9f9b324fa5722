"""The compiled code of a run: one cache, which is asked before anything is compiled for a task."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from threading import Lock
from typing import NamedTuple, TypeAlias

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.pool import CompileRequest
from mlir_sched.evaluation.outage import may_be_of_environment
from mlir_sched.tasks.task import Task

LATEST = 512
"""Results that stay for no other reason than that they are the latest: a bound on memory, 20 MB with code of 40 KB. A
round that is compiled ahead of its measurement, or to be estimated, has tens of results."""
Wanted: TypeAlias = tuple[Task, str | None]
"""A task with a script, or with None for its untuned code."""
_Pending: TypeAlias = Future[CompileResult]


class _Key(NamedTuple):
    """What makes compiled code one and the same.

    Attributes:
        task: The compiler's flags, the length of the chain that the program gets, and the key of the task.
        script: The script; None for untuned code.
    """

    task: tuple[tuple[str, ...], int, str]
    script: str | None


class CompiledCode:
    """Compiled code in memory; what another process compiled is not there.

    A task's untuned code and its fastest scripts stay from their measurement on. Of all other results the
    :data:`LATEST` stay, failures among them; but a failure for which the machine may be to blame is never given out
    again: that code is compiled anew.

    Args:
        fastest: Scripts per task that stay: those that may be chosen in the end.
    """

    def __init__(self, fastest: int = 0) -> None:
        self.fastest = fastest
        self._results: dict[_Key, _Pending] = {}  # the oldest first
        self._ratios: dict[_Key, float] = {}  # of results that stay
        self._lock = Lock()

    def of(self, pool: CompilerPool, wanted: Sequence[Wanted]) -> Iterator[tuple[int, CompileResult]]:
        """Yield (index in ``wanted``, result) once each: first what is there, then what is compiled, as it is done.

        What another thread compiles is waited for, and compiled here after all if that thread does not end it.

        Args:
            pool: Compiles what is missing; no other thread uses it meanwhile.

        Raises:
            OSError, EnvironmentFailureError: As for ``CompilerPool.compile_all``.
        """
        places: dict[_Key, list[int]] = {}
        for index, (task, script) in enumerate(wanted):
            places.setdefault(_key(pool, task, script), []).append(index)
        for key, result in self._of(pool, {key: wanted[indices[0]] for key, indices in places.items()}):
            yield from ((index, result) for index in places[key])

    def untuned(self, pool: CompilerPool, task: Task, following: Sequence[Task] = ()) -> CompileResult:
        """Return the untuned code of a task.

        Args:
            following: The tasks that are asked for next, in their order: if the task's code has to be compiled, what
                would be an idle process compiles theirs.
        """
        missing = not self._known([_key(pool, task, None)])
        beside = self._untried(pool, following)[: pool.workers - 1] if missing else []
        return dict(self.of(pool, [(each, None) for each in (task, *beside)]))[0]

    def compile_untuned(self, pool: CompilerPool, tasks: Sequence[Task], most: int) -> None:
        """Compile the untuned code of the first ``most`` of the tasks for which nobody tried to."""
        for _ in self.of(pool, [(task, None) for task in self._untried(pool, tasks)[:most]]):
            pass

    def keep(self, pool: CompilerPool, task: Task, script: str | None, ratio: float) -> None:
        """Let measured code stay: untuned code, or that of a script, in place of the slowest of the fastest.

        Args:
            script: The script; None for untuned code.
            ratio: How many times as fast as the untuned code it is.
        """
        key = _key(pool, task, script)
        with self._lock:
            if key not in self._results:
                return
            self._ratios[key] = ratio
            scripts = [each for each in self._ratios if each.task == key.task and each.script is not None]
            for slower in sorted(scripts, key=lambda each: -self._ratios[each])[self.fastest :]:
                del self._ratios[slower]

    def forget(self) -> None:
        """Drop what was not measured: the machine may have failed while it was compiled."""
        with self._lock:
            for key in self._passing():
                del self._results[key]

    def _of(self, pool: CompilerPool, wanted: Mapping[_Key, Wanted]) -> Iterator[tuple[_Key, CompileResult]]:
        own, others = self._claimed(wanted)
        try:
            ready = {key: result for key, each in others.items() if each.done() and (result := _result(each))}
            yield from ready.items()
            yield from self._compiled(pool, {key: wanted[key] for key in own})
        finally:
            self._give_up(own)
        awaited = {key: _result(each) for key, each in others.items() if key not in ready}
        yield from ((key, result) for key, result in awaited.items() if result is not None)
        if left := {key: wanted[key] for key, result in awaited.items() if result is None}:
            yield from self._of(pool, left)

    def _compiled(self, pool: CompilerPool, wanted: Mapping[_Key, Wanted]) -> Iterator[tuple[_Key, CompileResult]]:
        keys = list(wanted)
        candidates = [CompileRequest(task.source, script, task.constants) for task, script in wanted.values()]
        for number, result in pool.compile_all(candidates):
            self._settle(keys[number], result)
            yield keys[number], result

    def _known(self, keys: Iterable[_Key]) -> dict[_Key, _Pending]:
        """Return what is there and may be given out, or is being compiled."""
        found = {key: self._results[key] for key in keys if key in self._results}
        return {key: each for key, each in found.items() if not each.done() or _result(each) is not None}

    def _claimed(self, keys: Iterable[_Key]) -> tuple[dict[_Key, _Pending], dict[_Key, _Pending]]:
        """Return what the caller has to compile, which others wait for from now on, and what is known."""
        with self._lock:
            known = self._known(keys)
            own = {key: _Pending() for key in keys if key not in known}
            for key in own:
                self._results.pop(key, None)  # a failure, in whose place the code is the latest
            self._results |= own
        return own, known

    def _untried(self, pool: CompilerPool, tasks: Sequence[Task]) -> list[Task]:
        """Return the tasks whose untuned code nobody tried to compile."""
        return [task for task in tasks if _key(pool, task, None) not in self._results]

    def _settle(self, key: _Key, result: CompileResult) -> None:
        """Make a result known, and drop what is too old by then."""
        with self._lock:
            self._results[key].set_result(result)
            for old in self._passing()[:-LATEST]:
                del self._results[old]

    def _give_up(self, claimed: Mapping[_Key, _Pending]) -> None:
        """Let others compile what was claimed and was not compiled."""
        with self._lock:
            for key, each in claimed.items():
                if each.cancel():
                    del self._results[key]

    def _passing(self) -> list[_Key]:
        """Return the keys of the results that do not stay, the oldest first."""
        return [key for key, each in self._results.items() if each.done() and key not in self._ratios]


def _key(pool: CompilerPool, task: Task, script: str | None) -> _Key:
    return _Key((pool.flags, pool.chain_length, task.key), script)


def _result(pending: _Pending) -> CompileResult | None:
    """Wait for a result; None where it does not come, or is a failure for which the machine may be to blame."""
    with suppress(CancelledError):
        result = pending.result()
        if result.failure is None or not may_be_of_environment(result.failure):
            return result
    return None
