"""The middle loop: the search over the tasks of one variant's program, with one cost model and resumable rounds."""

from __future__ import annotations

import math
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import partial

from mlir_sched.corpus.sources import Asked
from mlir_sched.database.record import StoredTask
from mlir_sched.errors import MlirSchedError
from mlir_sched.evaluation.evaluator import UntunedError
from mlir_sched.evaluation.lookahead import Lookahead, Upcoming
from mlir_sched.evaluation.task_records import TaskRecords
from mlir_sched.evaluation.work import CandidateWork, UntunedWork, Work
from mlir_sched.models import SharedCostModel
from mlir_sched.outcome import Timing
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.search import Shown
from mlir_sched.search.strategy import repaired_in
from mlir_sched.search.task_scheduler import expected_saving_s, seconds_at_best_rates
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.result import CurvePoint, ProgramCurve
from mlir_sched.tuning.budget import Allowance, SearchProgress
from mlir_sched.tuning.exchange import MOST_EXCHANGED, FoundTrace, fitting, found_traces, offer_traces
from mlir_sched.tuning.journal import RoundLog
from mlir_sched.tuning.progress import Phase, SearchEvents, SearchState
from mlir_sched.tuning.task_history import TaskHistory
from mlir_sched.tuning.task_search import Round, TaskSearch
from mlir_sched.tuning.tuning_run import TuningRun

NOISE = 0.05
"""Relative difference between a program's time and the sum of its dispatches' times that counts as noise."""
MINUTE_S = 60.0
"""Seconds of the search whose saving is expected before it is begun (``TuneOptions.stop_below``)."""
NO_TIME_TO_MEASURE = "no time was left to measure it"
"""Why a dispatch stays untuned in a short run by time."""


@dataclass(frozen=True)
class ExtraTasks:
    """Tasks that are searched beside a program's own: those of other algorithms for sites of the program.

    Attributes:
        tasks: The tasks that the program lacks.
        focus: Keys of the tasks, own or further ones, that are searched; the others wait.
    """

    tasks: tuple[Task, ...]
    focus: frozenset[str]


@dataclass(frozen=True)
class Predecessor:
    """The search of another program that a search continues.

    Attributes:
        name: Name of the first of the continued searches.
        rounds: Rounds spent on tasks that are not searched any more.
        trials: Candidates tried on these tasks.
    """

    name: str
    rounds: int
    trials: int


@dataclass(eq=False)
class ProgramSearch:
    """The search for the scripts of one program; it stops at the end of an allowance and goes on with the next one.

    Attributes:
        run: The run that it belongs to.
        built: The variant whose program it is.
        events: Is told what happens in the search.
        searches: Tasks under search, the heaviest first.
        untunable: Why tasks cannot be searched, by key.
        waiting: Keys of tasks whose untuned code had no time yet.
        extra: The tasks that are searched at present beside the program's own; None for none.
        predecessor: The search that this one continues; None for none.
        log: The stored rounds of this search; None before it begins.
        estimates: What the program was expected to take before its first candidate and after every round, by the number
            of candidates tried; empty where the untuned program was not timed.
        model: The cost model of all tasks; by default a new one, which learns what the run begins from.
    """

    run: TuningRun
    built: BuiltVariant
    events: SearchEvents
    searches: list[TaskSearch] = field(default_factory=list)
    untunable: dict[str, str] = field(default_factory=dict)
    waiting: set[str] = field(default_factory=set)
    extra: ExtraTasks | None = None
    predecessor: Predecessor | None = None
    log: RoundLog | None = None
    estimates: dict[int, CurvePoint] = field(default_factory=dict)
    model: InitVar[SharedCostModel | None] = None
    _model: SharedCostModel = field(init=False)
    _found_elsewhere: Sequence[FoundTrace] = ()

    def __post_init__(self, model: SharedCostModel | None) -> None:
        self._model = model or self.run.method.shared_model()
        if model is None:
            self.run.transfer.teach(self._model)

    def work(self, allowance: Allowance, found: Sequence[FoundTrace] = ()) -> Iterator[Work]:
        """Go on until the end of an allowance, or until nothing is left to try, or too little is expected of it.

        Raises:
            UserError: A part of the search that is not ours raised.
        """
        with self.run.method.errors():
            yield from self._work(allowance, found)

    def _work(self, allowance: Allowance, found: Sequence[FoundTrace]) -> Iterator[Work]:
        yield from self._untuned_work(allowance)
        self._found_elsewhere = found
        offer_traces(self.searches, self._found())
        self._estimate()
        following = self._next_task()
        while following is not None and (count := allowance.next_round(self._progress(following))):
            if not self._expects_enough():
                break
            self.tell(Phase.SEARCH, following.task.name)
            self._log.save(self._rounds() + 1, self.tried)
            size = self._limit(following, count)
            lookahead = Lookahead(partial(self._look_ahead, following, size, allowance))
            self._offer(following)
            if not following.history.records:
                following.believe(self._shown_to(following))
            outcome = yield from following.round(allowance.round_size, size, lookahead)
            self._log.save(self._rounds(), self.tried)
            self._tell_errors(outcome)
            if outcome.found is not None:
                yield from self._exchange(outcome.found, following, allowance)
                self._log.save(self._rounds(), self.tried)
            self.run.clock.save()
            self._estimate()
            self.tell(Phase.SEARCH, following.task.name)
            upcoming = lookahead.upcoming()
            following = self._next_task() if upcoming is None else self._search_of(upcoming.task)
        self._log.save_model(self._model)
        self.run.clock.save()

    @property
    def name(self) -> str:
        """Name of the variant."""
        return self.built.variant.name

    @property
    def target(self) -> Target:
        """The target, with the threads that the program runs on."""
        return self.built.on(self.run.target)

    def search_also(self, tasks: Sequence[Task], focus: frozenset[str]) -> None:
        """Search further tasks beside the program's own, from the next allowance on.

        Args:
            focus: Keys of the tasks, own or further ones, that are searched; the others wait.
        """
        own = {task.key for task in self.built.model.tasks}
        self.extra = ExtraTasks(tuple({task.key: task for task in tasks if task.key not in own}.values()), focus)

    def continued_on(self, built: BuiltVariant) -> ProgramSearch:
        """Return the search for the scripts of a variant that continues this one, with the variant's tasks."""
        tasks = {task.key: task for task in built.model.tasks}
        kept = [replace(search, task=tasks[search.task.key]) for search in self.searches if search.task.key in tasks]
        left = [search for search in self.searches if search.task.key not in tasks]
        before = self.predecessor or Predecessor(self.name, 0, 0)
        rounds = before.rounds + sum(search.history.rounds for search in left)
        return replace(
            self,
            built=built,
            searches=kept,
            untunable={key: why for key, why in self.untunable.items() if key in tasks},
            waiting=self.waiting & tasks.keys(),
            extra=None,
            predecessor=Predecessor(before.name, rounds, before.trials + sum(search.tried for search in left)),
            estimates=dict(self.estimates) if built is self.built else {},
            model=self._model,
        )

    @property
    def tasks(self) -> list[Task]:
        """The tasks that can be tuned."""
        tasks = (*self.built.model.tasks, *(self.extra.tasks if self.extra else ()))
        return [task for task in tasks if can_tune(task, self.run.space, self.run.target)]

    @property
    def tried(self) -> int:
        """Candidates tried so far, those on tasks that are not searched any more included."""
        before = self.predecessor.trials if self.predecessor else 0
        return before + sum(search.tried for search in self.searches)

    @property
    def measured(self) -> int:
        """Candidates of the tasks under search that this process evaluated, not found in the store."""
        return sum(search.measured for search in self.searches)

    def call_s(self) -> dict[str, float]:
        """Return the seconds per call of every task under search, with its best script so far, by task key."""
        return {search.task.key: search.history.seconds_per_call() for search in self.searches}

    def reachable_s(self) -> dict[str, float]:
        """Return the seconds per call that every task under search would take at the best rates of all, by task key."""
        alike = [
            (search.demand and replace(search.demand, family=""), search.history.seconds_per_call())
            for search in self.searches
        ]
        at_best = zip(self.searches, alike, seconds_at_best_rates(alike), strict=True)
        return {search.task.key: reachable_s or now_s for search, (_, now_s), reachable_s in at_best}

    def unsearched(self) -> dict[str, str]:
        """Return why tasks are not searched, by key."""
        return self.untunable | dict.fromkeys(self.waiting, NO_TIME_TO_MEASURE)

    def expected_s(self) -> float:
        """Return the seconds that the program is expected to take with the best scripts so far.

        Of the untuned program's time outside of its tasks, only what exceeds the :data:`NOISE` counts. Where tasks are
        many times faster with scripts, the noise would be most of the expected time.
        """
        if self.built.timing is None:
            return float("inf")
        further = {task.key for task in self.extra.tasks} if self.extra else set[str]()
        own = [search for search in self.searches if search.task.key not in further]
        untuned_s = sum(search.task.weight * search.history.untuned.median_s for search in own)
        rest_s = max(0.0, (1 - NOISE) * self.built.timing.median_s - untuned_s)
        return rest_s + sum(search.seconds_per_run() for search in own)

    @property
    def too_little(self) -> float | None:
        """Share of the program's time that the next minute was expected to save where the search ended for that."""
        least = self.run.options.stop_below
        if least is None:
            return None
        expected: float | None = self.run.decided(self._next_minute)
        return expected if expected is not None and expected < least else None

    @property
    def is_exhausted(self) -> bool:
        """Whether nothing is left to try on any task."""
        return not self.waiting and bool(self.searches) and all(search.exhausted for search in self.searches)

    def curve(self) -> ProgramCurve:
        """Return the expected times of the program over the time of the run, of rounds in earlier processes, too."""
        return ProgramCurve(self.name, tuple(self.estimates.values()))

    def state(self) -> SearchState:
        """Return how far the search is."""
        failures: Counter[str] = Counter()
        for search in self.searches:
            failures += search.history.failures()
        begun = (search for search in self.searches if search.tried or search.history.best_ratio() > 1.0)
        best = {search.task.name: search.history.best_ratio() for search in begun}
        name = self.predecessor.name if self.predecessor else self.name
        return SearchState(name, self.tried, best, dict(failures))

    @property
    def _log(self) -> RoundLog:
        """The stored rounds of this search; read when it begins, so that it sees what other searches stored by then."""
        if self.log is None:
            self.log = RoundLog.of(self.run, self.tasks, self.target)
        return self.log

    def _next_task(self, current: TaskSearch | None = None, tried: int = 0) -> TaskSearch | None:
        """Return the task whose round is next, or None when nothing is left to try.

        Args:
            current: The task whose round is running, with outcomes that are not known.
            tried: Candidates of this round.
        """
        searches = self._in_focus()
        progress = [search.progress(tried if search is current else 0) for search in searches]
        index = self.run.method.scheduler.next_task(progress)
        return None if index is None else searches[index]

    def _expects_enough(self) -> bool:
        """Say whether enough is expected of the next minute; always where the user sets no bound.

        What is expected before a round is decided once per run. The search of other algorithms has its own bound, and
        what it gains is not in the program's time yet.
        """
        least = self.run.options.stop_below
        if least is None or self.extra is not None:
            return True
        return self.run.decide(self._next_minute, self._expected_share) >= least

    @property
    def _next_minute(self) -> str:
        return f"next-minute-{self.name}-{self.tried}"

    def _expected_share(self) -> float:
        """Return the share of the program's time that the next minute is expected to save; 1 as long as it is unknown.

        The minute has as many candidates as the pace of those before says (:func:`expected_saving_s`).
        """
        candidate_s = self.run.ledger.pace_s({search.task.key for search in self.searches})
        if not candidate_s or self.waiting or self.built.timing is None:
            return 1.0
        progress = [search.progress() for search in self._in_focus()]
        return expected_saving_s(progress, MINUTE_S / candidate_s) / self.expected_s()

    def _shown_to(self, search: TaskSearch) -> list[Shown]:
        """Return what is known of other tasks: the sources of a task, and those of the program that had candidates."""
        sources = self.run.transfer.shown_to(Asked(search.space.dispatch, self.target))
        return [*sources, *(each.shown for each in self.searches if each is not search and each.history.records)]

    def _look_ahead(self, current: TaskSearch, tried: int, allowance: Allowance) -> Upcoming | None:
        """Choose the task of the next round, and its candidates, before the outcomes of the current round are known.

        None is chosen where the next round is likely to be the same task's, which has much to learn from this round. Of
        the candidates those are chosen that the budget is likely to have room for.

        Args:
            tried: Candidates of the current round.
        """
        search = self._next_task(current, tried)
        if search is None or search is current:
            return None
        self._offer(search)
        scripts, progress = search.prepare(allowance.round_size), self._progress(search)
        count = allowance.next_round(replace(progress, tried=progress.tried + tried))
        return Upcoming(search.task, scripts[: self._limit(search, count)])

    def _limit(self, search: TaskSearch, count: int) -> int:
        """Return how many of ``count`` candidates a round of a task may try."""
        candidate_s = self.run.ledger.candidate_s(search.history.untuned.median_s)
        return min(count, self.run.budget.most_of_round(candidate_s))

    def _search_of(self, task: Task) -> TaskSearch:
        """Return the search of a task that is searched."""
        return next(search for search in self.searches if search.task is task)

    def _waits(self, task: Task) -> bool:
        """Say whether a task waits while others are searched."""
        return self.extra is not None and task.key not in self.extra.focus

    def _in_focus(self) -> list[TaskSearch]:
        """Return the searches that may have the next round."""
        return [search for search in self.searches if not self._waits(search.task)]

    def _progress(self, following: TaskSearch) -> SearchProgress:
        """Return how far the search is, before a round of a task."""
        searches, reached = self._in_focus(), following.history.rounds > 0
        diverged = self._diverged()
        begun = self._log.had_begun(self._rounds(), self.tried) and not diverged
        late = sum(task.key in self.waiting and not self._waits(task) for task in self.tasks)
        return SearchProgress(self.tried, self.run.clock.spent_s(), len(searches) + late, reached, begun, diverged)

    def _diverged(self) -> bool:
        """Say whether this process measures more than the rest of a round that an earlier process left.

        The search then tries other candidates than that process, for instance because shares of the time differ.
        """
        return self.measured > self.run.options.round_size

    def _rounds(self) -> int:
        before = self.predecessor.rounds if self.predecessor else 0
        return before + sum(search.history.rounds for search in self.searches)

    def _untuned_work(self, allowance: Allowance) -> Iterator[UntunedWork]:
        """Begin to search the tasks that are not searched yet, those with the largest share of the time first.

        By time, the untuned code of the last tasks may have to wait for a later allowance.
        """
        self.tell(Phase.UNTUNED)
        until_s = allowance.untuned_until_s(self.run.clock.spent_s())
        known = {*self.untunable, *(search.task.key for search in self.searches)}
        unknown = [(index, task) for index, task in self._by_share() if task.key not in known]
        self.waiting |= {task.key for _, task in unknown}
        turns = [(index, task, self._stored(task)) for index, task in unknown if not self._waits(task)]
        timings = {task.key: stored.untuned() for _, task, stored in turns}
        missing = deque(task for _, task, _ in turns if timings[task.key] is None)
        for index, task, stored in turns:
            untuned = timings[task.key]
            if untuned is None:
                missing.popleft()
            if untuned is not None or self.run.clock.spent_s() <= until_s:
                self.waiting.discard(task.key)
                yield from self._begin(index, task, stored, untuned, tuple(missing))
        self.searches.sort(key=TaskSearch.seconds_per_run, reverse=True)

    def _by_share(self) -> list[tuple[int, Task]]:
        """Return (number, task) of the tasks that can be tuned, those with the largest share of the time first.

        Each process measures a profile of its own. The order is that of the first one: rows of the cost model have it.
        """
        profile, tasks = self.built.profile, self.built.model.tasks
        shares = profile.shares(task.name for task in tasks) if profile else {}
        ordered = sorted(enumerate(self.tasks), key=lambda pair: -shares.get(pair[1].name, 0.0))
        name = f"{self.run.clock.key}-order-{self.name}"
        keys = self.run.store.decide(name, lambda: [task.key for _, task in ordered])
        place = {key: number for number, key in enumerate(keys)}
        return sorted(ordered, key=lambda pair: place.get(pair[1].key, len(place)))

    def _stored(self, task: Task) -> TaskRecords:
        """Return the records of a task that this search may know."""
        seed, last_record, sources = self.run.options.seed, self._log.last_record, self.run.space.sources
        return TaskRecords(self.run.store, task.key, self._log.context, seed, last_record, sources)

    def _begin(
        self, index: int, task: Task, stored: TaskRecords, untuned: Timing | None, missing: Sequence[Task]
    ) -> Iterator[UntunedWork]:
        """Begin the search of a task, or note why the task stays untuned.

        Args:
            index: Its number among the tasks.
            untuned: The time of its untuned code; None has the code measured.
            missing: The tasks whose untuned code is measured next.
        """
        assert task.dispatch is not None
        self.run.store.add_task(StoredTask.of(task, self.target))
        if untuned is None:
            work = UntunedWork(task, stored, missing)
            yield work
            if work.error is not None:
                self._leave_out(task, work.error)
                return
            untuned = work.timing
        assert untuned is not None
        space = self.run.design(self.run.space, task.dispatch, self.target)
        strategy = self.run.method.strategy_for(space, self._model, self.run.options.seed, index)
        given, history = repaired_in(space, self.run.start_from), TaskHistory(untuned)
        search = TaskSearch(
            task, space, strategy, stored, history, given, drawn=self.run.drawn if strategy.preselected else 1
        )
        search.warm_start()
        self._begin_with_known(search)
        self.searches.append(search)
        self.tell(Phase.UNTUNED)

    def _begin_with_known(self, search: TaskSearch) -> None:
        """Have a task try first what is known of it before its first candidate, in its first round."""
        size = self.run.options.round_size
        search.guess(self.run.templates(search.space), math.ceil(size / 2))
        starts = self.run.transfer.starts_of(Asked(search.space.dispatch, self.target))
        search.begin_with(starts, size // 2)

    def _leave_out(self, task: Task, error: UntunedError) -> None:
        """Note why a task stays untuned."""
        self.untunable[task.key] = str(error)
        if error.__cause__ and not isinstance(error.__cause__, MlirSchedError):
            self.events.on_internal_error("".join(traceback.format_exception(error)))

    def _offer(self, search: TaskSearch) -> None:
        """Offer a task that had no round the best traces so far of all others."""
        if not search.history.rounds:
            offer_traces([search], self._found())

    def _found(self) -> list[FoundTrace]:
        """Return the best traces so far, those of other programs included."""
        return [*found_traces(self.searches), *self._found_elsewhere]

    def _exchange(self, found: Trace, source: TaskSearch, allowance: Allowance) -> Iterator[CandidateWork]:
        """Try the new best trace of a task on other tasks that it fits and that had a round."""
        begun = [search for search in self._in_focus() if search.history.rounds]
        for search, trace in fitting(found, source, begun)[:MOST_EXCHANGED]:
            if allowance.next_round(self._progress(search)):
                self._tell_errors((yield from search.extend_round(trace)))

    def _estimate(self) -> None:
        """Note the expected time, with the moment at which a process of the run first came as far."""
        if self.built.timing is not None:
            run_s = self.run.clock.reached(f"{self.name}-{self.tried}")
            self.estimates[self.tried] = CurvePoint(run_s, self.tried, self.expected_s())

    def tell(self, phase: Phase, dispatch: str = "") -> None:
        """Tell the listener in which phase the run is, and which dispatch is worked on."""
        self.events.on_phase(phase, self.state(), dispatch)

    def _tell_errors(self, outcome: Round) -> None:
        for text in outcome.internal_errors:
            self.events.on_internal_error(text)
