"""An evaluator that measures nothing: candidates are faster than the untuned code by a given factor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.outcome import Outcome, Timing, Verdict
from mlir_sched.tasks.task import Task

Factor = float | Callable[[int], float]


def timing(median_s: float, ratio: float) -> Timing:
    return Timing(median_s, median_s, median_s, 9, ratio, ratio, ratio)


class Speedups(Evaluator):
    """An evaluator in which candidates of a task are faster than its untuned code by a factor.

    Args:
        by_name: The factor, or that of the n-th candidate, from 1, by the task's name.
    """

    def __init__(self, by_name: Mapping[str, Factor], stop_after: int | None = None) -> None:
        self.by_name = dict(by_name)
        self.stop_after = stop_after
        self.now_s = 0.0
        self.measured: list[str] = []

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del following
        return Outcome(timing(1e-3, 1.0), None, f"untuned {task.name}", verdict=Verdict.RIGHT)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del known
        for index, script in enumerate(scripts):
            if self.stop_after is not None and len(self.measured) >= self.stop_after:
                raise KeyboardInterrupt
            self.measured.append(task.name)
            self.now_s += 1
            factor = self.by_name[task.name]
            ratio = factor(self.measured.count(task.name)) if callable(factor) else factor
            yield index, Outcome(timing(1e-3 / ratio, ratio), None, script, verdict=Verdict.RIGHT)


class Estimating(Speedups):
    """Speed-ups that are known, with estimates: the later a script is drawn, the faster it is said to be."""

    def __init__(self, by_name: Mapping[str, Factor], error: Exception | None = None) -> None:
        super().__init__(by_name)
        self.error = error
        self.drawn: list[list[str]] = []
        self.scripts: list[str] = []

    def estimates(self, task: Task, scripts: Sequence[str]) -> list[float | None]:
        del task
        self.drawn.append(list(scripts))
        if self.error is not None:
            raise self.error
        return [1.0 / (1 + place) for place in range(len(scripts))]

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        self.scripts += scripts
        return super().evaluate(task, scripts, known)
