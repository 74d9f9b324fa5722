"""Compiled code that a run keeps, so that its finalists need not be compiled again."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlir_sched.compiler import CompileResult
from mlir_sched.tasks.task import Task

FINALISTS = 3
"""Best candidates of a task that may be measured once more at the end, and whose code is kept."""


@dataclass(frozen=True)
class _Candidate:
    ratio: float
    key: str
    result: CompileResult


@dataclass
class KeptCode:
    """The compiled code of every task without a script and with its fastest scripts: some ten KB each.

    What another process compiled is not there.
    """

    _untuned: dict[str, CompileResult] = field(default_factory=dict)
    _best: dict[str, list[_Candidate]] = field(default_factory=dict)

    def keep_untuned(self, task: Task, result: CompileResult) -> None:
        """Keep the untuned code of a task."""
        self._untuned[task.key] = result

    def keep(self, task: Task, key: str, result: CompileResult, ratio: float) -> None:
        """Keep the code of a script if the script is among the fastest of its task, in place of the slowest of these.

        Args:
            task: The task.
            key: The script's key in the record store.
            result: Its compiled code.
            ratio: How many times as fast as the untuned code it is.
        """
        best = [*self._best.get(task.key, ()), _Candidate(ratio, key, result)]
        best.sort(key=lambda candidate: -candidate.ratio)
        self._best[task.key] = best[:FINALISTS]

    def untuned(self, task: Task) -> CompileResult | None:
        """Return the untuned code of a task; None if it was not kept."""
        return self._untuned.get(task.key)

    def of(self, task: Task, key: str) -> CompileResult | None:
        """Return the code of a task with the script of a key, as the search compiled it; None if it was not kept."""
        found = (candidate.result for candidate in self._best.get(task.key, ()) if candidate.key == key)
        return next(found, None)
