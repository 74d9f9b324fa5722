"""The untuned code of tasks, compiled for as many tasks at the same time as there are compiler processes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.compiler.pool import Candidate
from mlir_sched.evaluation.origin import is_doubtful
from mlir_sched.tasks.task import Task


@dataclass
class UntunedCode:
    """Compiles the untuned code of tasks, each once, ahead of the moment at which it is asked for.

    Attributes:
        pool: Compiles.
    """

    pool: CompilerPool
    _ahead: dict[str, CompileResult] = field(default_factory=dict)

    def of(self, task: Task, following: Sequence[Task] = ()) -> CompileResult:
        """Return the untuned code of a task.

        Args:
            task: The task.
            following: The tasks that are asked for next, in their order: what would be an idle process compiles theirs.
        """
        known = self._ahead.get(task.key)
        if known is not None and known.failure is not None and is_doubtful(known.failure):
            del self._ahead[task.key]  # the machine may have failed when it was compiled
        if task.key not in self._ahead:
            self.compile([task, *following], self.pool.workers)
        return self._ahead.pop(task.key)

    def beside(self, task: Task, scripts: Sequence[str]) -> Iterator[tuple[int, CompileResult]]:
        """Compile scripts of a task, and its untuned code, too; yield (index in ``scripts``, result) per script."""
        missing = [None] if task.key not in self._ahead else []
        for index, result in self.pool.compile(task.source, [*scripts, *missing], task.constants):
            if index < len(scripts):
                yield index, result
            else:
                self._ahead[task.key] = result

    def compile(self, tasks: Sequence[Task], most: int) -> None:
        """Compile the untuned code of the first ``most`` of the tasks whose code is not there yet."""
        missing = [task for task in tasks if task.key not in self._ahead][:most]
        candidates = [Candidate(task.source, None, task.constants) for task in missing]
        self._ahead |= {missing[index].key: result for index, result in self.pool.compile_all(candidates)}
