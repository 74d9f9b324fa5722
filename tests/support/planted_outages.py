"""An evaluator whose machine, untuned code or candidates fail when a test says so."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

from speedups import timing

from mlir_sched.errors import Failure, FailureClass
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.outcome import Outcome
from mlir_sched.tasks.task import Task

CRASH = Failure(FailureClass.COMPILE_CRASH, "the compiler process ended with exit code 1")
Fault = Failure | Exception | None


class Planted(Evaluator):
    """Outcomes that depend on the script alone, as far as nothing fails.

    Args:
        fault: What happens to the n-th candidate, from 1, of a task.
        machine: How the canary fails when it is asked for the n-th time.
    """

    def __init__(
        self,
        fault: Callable[[int, Task], Fault] = lambda *_: None,
        machine: Callable[[int], Fault] = lambda _: None,
    ) -> None:
        self.fault, self.machine = fault, machine
        self.asked: list[str] = []
        self.canaries = self.renewed = 0

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del following
        return Outcome(timing(1e-3, 1.0), None, f"untuned {task.name}")

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del known
        for index, script in enumerate(scripts):
            self.asked.append(script)
            fault = self.fault(len(self.asked), task)
            if isinstance(fault, Exception):
                raise fault
            digest = hashlib.sha256((task.key + script).encode()).hexdigest()
            ratio = 0.5 + int(digest[:8], 16) % 1000 / 1000
            yield index, Outcome(None, fault) if fault else Outcome(timing(1e-3 / ratio, ratio), None, digest)

    def canary(self, task: Task) -> Failure | None:
        del task
        self.canaries += 1
        fault = self.machine(self.canaries)
        if isinstance(fault, Exception):
            raise fault
        return fault

    def renew(self) -> None:
        self.renewed += 1
