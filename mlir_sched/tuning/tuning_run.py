"""A tuning run: what its searches share, its clock, and what it decides once, also for processes that resume it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, TypeAlias, TypeVar

from mlir_sched.corpus.sources import Asked
from mlir_sched.database import RecordStore
from mlir_sched.database.record import measuring_context
from mlir_sched.database.work_cost import WorkCost, WorkKind
from mlir_sched.payload import Dispatch
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.tunability import can_tune, tunable_variants
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tensors.values import digests_of
from mlir_sched.trace import Trace
from mlir_sched.tuning.budget import Budget
from mlir_sched.tuning.ledger import End, Ledger
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.transfer import Transfer, TransferPlan

T = TypeVar("T")
DesignSpaces: TypeAlias = Callable[[Space, Dispatch, Target], DesignSpace]
"""Makes design spaces, as the class does."""


@dataclass
class RunClock:
    """A count of a run's seconds; a process that resumes the run goes on from the seconds of the last :meth:`save`.

    Attributes:
        start: When this process began with the run, by ``time.monotonic()``.
        earlier_s: Seconds that earlier processes spent on the run.
    """

    store: RecordStore
    key: str
    start: float
    earlier_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.earlier_s = self.store.seconds(self.key)

    def here_s(self) -> float:
        """Return the seconds that this process spent so far."""
        return time.monotonic() - self.start

    def spent_s(self) -> float:
        """Return the seconds that were spent so far, in this process and in earlier ones."""
        return self.earlier_s + self.here_s()

    def reached(self, event: str) -> float:
        """Return the seconds that were spent when a process of the run first asked for an event, which may be now."""
        return self.store.decide(f"{self.key}-{event}", self.spent_s)

    def save(self) -> None:
        """Keep the seconds spent so far."""
        self.store.save_seconds(self.key, self.spent_s())


@dataclass(frozen=True)
class TuningRun:
    """One run on one model: the search over its variants, and over the tasks of each.

    Attributes:
        store: Where records, decisions and the clock are kept.
        start_from: Traces that are tried first for every dispatch whose space they fit.
        generation: How often the user asked for a fresh start in this store.
        key: The same in every process that works on this run; the run's decisions are kept under this key.
        clock: Counts the seconds of all processes that work on this run.
        ledger: What the pieces of its work take.
        drawn: Traces per candidate of a task's first round (``TaskSearch``).
        transfer: What its searches begin from.
    """

    options: TuneOptions
    target: Target
    space: Space
    store: RecordStore
    method: SearchMethod
    start_from: tuple[Trace, ...]
    generation: int
    key: str
    clock: RunClock
    ledger: Ledger
    budget: Budget
    drawn: int = 1
    design: DesignSpaces = DesignSpace
    transfer: Transfer = field(default_factory=Transfer)

    @staticmethod
    def of(
        options: TuneOptions,
        target: Target,
        space: Space,
        store: RecordStore,
        built: Sequence[BuiltVariant],
        *,
        start: float,
        method: SearchMethod | None = None,
        generation: int = 0,
        start_from: Sequence[Trace] = (),
        drawn: int = 1,
        design: DesignSpaces = DesignSpace,
        transfer: TransferPlan | None = None,
        searched: Sequence[BuiltVariant] = (),
        ledger: Ledger | None = None,
    ) -> TuningRun:
        """Return the run on a model, begun now or resumed.

        Args:
            options, target, space, store, method, generation, start_from, drawn, design: As the attributes.
            start: When this process began with the run, by ``time.monotonic()``.
            transfer: Finds what its searches begin from; by default they begin from nothing.
            searched: The variants that may be searched where that is settled, so that all else has no part in the
                sources and in the budget; empty by default.
            ledger: What has counted the costs so far; by default a new one.
        """
        method = method or SearchMethod()
        asked = _asked(options, method, target, space, built, start_from, generation, drawn)
        known = Transfer()
        if transfer is not None:
            asked = [*asked, *transfer.key]
            may_be = searched or tunable_variants(built, space, target) or built
            tasks_asked = _searched(may_be, space, target, generation)
            known = transfer.decided(store, f"transfer-{_digest(asked)}", tasks_asked)
            asked = [*asked, *known.key]
        key = "run-" + _digest([*asked, *options.budget_key()])
        clock = RunClock(store, "clock-" + _digest(asked), start)  # more trials or minutes go on with the same clock
        begun_s = store.decide(f"{key}-begun", clock.spent_s)  # a resumed run divides the time that was left then
        tasks = max((sum(can_tune(t, space, target) for t in b.model.tasks) for b in searched or built), default=0)
        fastest = min((b for b in built if b.timing is not None), key=lambda b: b.call_s, default=built[0])
        books = ledger or Ledger.of(target, store)
        books.key, books.begun_s = key, begun_s
        books.finalist_s = store.decide(f"{key}-finalist", lambda: books.first_finalist_s(fastest))
        end = store.decide(f"{key}-ending", lambda: list(astuple(books.end(built, fastest, tasks=tasks))))
        budget = Budget.of(options, tasks=tasks, begun_s=begun_s, end=End(*end))
        for each in built:
            books.add(WorkCost(WorkKind.BUILD, each.variant.name, 1, each.build_s))
        given = tuple(start_from)
        return TuningRun(
            options, target, space, store, method, given, generation, key, clock, books, budget, drawn, design, known
        )

    def templates(self, space: DesignSpace) -> Sequence[Trace]:
        """Return what transform modules guess of a task, if the user wants it tried."""
        return space.templates() if self.options.uses_templates else ()

    def decide(self, name: str, make: Callable[[], T]) -> T:
        """Return what a process of this run decided first under a name; if none has, what ``make`` returns now."""
        return self.store.decide(f"{self.key}-{name}", make)

    def decided(self, name: str) -> Any:
        """Return what is decided under a name, or None."""
        return self.store.decided(f"{self.key}-{name}")


def _asked(
    options: TuneOptions,
    method: SearchMethod,
    target: Target,
    space: Space,
    built: Sequence[BuiltVariant],
    start_from: Sequence[Trace],
    generation: int,
    drawn: int,
) -> list[object]:
    """Return what tells runs apart, except for their budgets: a program, a machine and a way to search."""
    return [
        {b.variant.name: [task.key for task in b.model.tasks] for b in built},
        [module.name for module in space.modules],
        measuring_context(target, generation=generation),
        *options.search_key(),
        *method.key(),
        [trace.key for trace in start_from],
        digests_of(options.values),
        drawn,
        *options.bounds().items(),
    ]


def _searched(
    built: Sequence[BuiltVariant], space: Space, target: Target, generation: int
) -> dict[tuple[str, str], Asked]:
    """Return the dispatches that can be searched, each with its target, by the key and the context of their records."""
    found = dict[tuple[str, str], Asked]()
    for each in built:
        context = measuring_context(each.on(target), generation=generation)
        for task in each.model.tasks:
            if task.dispatch is not None and can_tune(task, space, target):
                found[task.key, context] = Asked(task.dispatch, each.on(target))
    return found


def _digest(asked: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
