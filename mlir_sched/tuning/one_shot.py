"""No search: one program variant, and a few candidates per task, chosen before the first one is measured.

The candidates come from the cost model of what other dispatches showed, evolved as in a search, and from templates.
What was chosen is compiled, proven, checked, timed and recorded as the candidates of a search are, and finalists and
emission decide as ever. So a search goes on from these records.

Source: One-Shot Tuner (Ryu et al., CC 2022): a predictor that was taught before takes the place of the search.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial

from mlir_sched.corpus.sources import Asked
from mlir_sched.errors import UserError
from mlir_sched.evaluation.lookahead import Lookahead, Upcoming
from mlir_sched.evaluation.work import Work
from mlir_sched.models import RandomModel, SharedCostModel
from mlir_sched.plugins import key_of
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.compile_policy import NOT_SETTLED
from mlir_sched.search import Acquisition, EvolutionaryOptions, GradientScheduler
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.transferred import OneShotResult
from mlir_sched.tuning.budget import Allowance, picks_per_task
from mlir_sched.tuning.exchange import FoundTrace
from mlir_sched.tuning.options import NO_TRANSFER, TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import Phase
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.task_search import TaskSearch
from mlir_sched.tuning.variant_choice import VariantChoice
from mlir_sched.tuning.variant_search import Turns, VariantSearch

TEMPLATES = 1
"""Templates among the candidates of a task where the cost model predicts the others: the best guess."""


class Origin(StrEnum):
    """Where a candidate comes from."""

    GIVEN = "given"
    EARLIER = "earlier runs"
    TEMPLATES = "templates"
    COST_MODEL = "cost model"
    DEVICE_MODEL = "device model"
    DRAWN = "random draws"


def without_search(method: SearchMethod) -> SearchMethod:
    """Return the method by which candidates are chosen without a search: by the mean prediction alone, and no draws.

    Raises:
        UserError: It has a part that has no say without a search.
    """
    strategy = method.strategy
    if not isinstance(strategy, EvolutionaryOptions):
        raise _without_use("search strategy", strategy)
    if not isinstance(method.scheduler, GradientScheduler):
        raise _without_use("task scheduler", method.scheduler)
    if method.cost_model is RandomModel:
        raise _without_use("cost model", method.cost_model)
    return replace(method, strategy=replace(strategy, random_share=0.0, acquisition=Acquisition.MEAN))


def _without_use(what: str, part: object) -> UserError:
    text = f"without a search (0 trials) the {what} {key_of(part)} has no use"
    return UserError(f"{text}: leave it out, or give a number of trials")


def require_candidates(options: TuneOptions, given: Collection[Trace], *, modelled: bool) -> None:
    """Refuse a run without a search that has nothing to choose candidates from.

    Args:
        given: Traces that the user gave.
        modelled: Whether a model of the device chooses among draws.

    Raises:
        UserError: See above.
    """
    if options.begins_from == NO_TRANSFER and not options.uses_templates and not given and not modelled:
        raise UserError(
            "nothing is left to choose from: without a search (0 trials) candidates come from what other dispatches "
            "showed and from templates, and both are off; leave one of them on, or give a number of trials"
        )


@dataclass
class SettledVariant(VariantChoice):
    """The choice of variants without a search: at most one is compiled beside the default.

    That is the one that an earlier run on such a program chose, which may be none, else the first one that compiles of
    those that a prediction or the default's profile speaks for.
    """

    why_not = NOT_SETTLED
    trusts_earlier_runs = True
    _settled: Set[str] = frozenset()

    @property
    def hurried(self) -> bool:
        """Whether the default is profiled before other variants are compiled: always."""
        return True

    def settle(self, names: Collection[str]) -> None:
        """Hear which variants something speaks for."""
        self._settled = frozenset(names)

    def should_compile(self, name: str) -> bool:
        """Say whether a variant is to be compiled: the first one that compiles of those that something speaks for."""
        first = len(self._compiled) == self._failed
        return self._decided(name, wanted=name in self._settled and first and self._has_time(until=self.end))

    def should_compile_beside(self, name: str, *, extended: bool) -> bool:
        """Say whether a variant is to be compiled beside another one: never."""
        del extended
        return self._decided(name, wanted=False)

    def refines_at_once(self) -> bool:
        """Say whether only what refines the variant is compiled that the profile speaks for: scripts come at once."""
        return True


@dataclass(frozen=True)
class Choice:
    """What a task measures without a search.

    Attributes:
        size: How many candidates.
        origins: Where those come from that are known before the strategy is asked, by the keys of their traces.
        further: Where the others come from.
    """

    size: int
    origins: Mapping[str, Origin]
    further: Origin

    @staticmethod
    def of(
        search: TaskSearch,
        templates: Sequence[Trace],
        most: int,
        *,
        predicts: bool,
        near: bool = True,
        estimates: bool = False,
        earlier: Iterable[Trace] = (),
    ) -> Choice:
        """Return the choice for a task, and give the task those that the strategy is not asked for.

        Traces that were given come in any case, and candidates that the store knows to be faster than the untuned code
        count, too. Where nothing predicts, templates alone are tried; where there are none either, draws.

        Args:
            templates: What the transform modules guess, the best guess first.
            most: Candidates of a task.
            predicts: Whether the cost model can predict.
            near: Whether it was taught something of the task's family.
            estimates: Whether a model of the device chooses among what the strategy suggests.
            earlier: The best candidates of the same dispatch in other runs; the first comes before all that is guessed.
        """
        given = {trace.key: Origin.GIVEN for trace in search.starts}
        left = max(0, most - len(given) - _known(search, most))
        search.offer(earlier, left)
        found = {trace.key: Origin.EARLIER for trace in search.found}
        guessed = left - len(found)
        search.guess(templates, min(guessed, TEMPLATES) if (predicts and near) or estimates else guessed)
        origins = {trace.key: Origin.TEMPLATES for trace in search.guesses} | found | given
        further = Origin.DEVICE_MODEL if estimates else Origin.COST_MODEL if predicts else Origin.DRAWN
        asked = (predicts and near) or estimates or not origins
        return Choice(len(given) + left if asked else len(origins), origins, further)


def _known(search: TaskSearch, most: int) -> int:
    """Return how many candidates of earlier runs are faster than a task's untuned code, at most ``most``.

    Those that were not checked in full count only beside one that was.
    """
    if search.history.best_ratio() <= 1.0:
        return 0
    timed = [record.outcome.timing for record in (*search.history.ranked(), *search.history.unchecked())]
    return min(most, sum(timing is not None and timing.ratio > 1.0 for timing in timed))


@dataclass(eq=False)
class OneShotProgram(ProgramSearch):
    """The candidates of one program, chosen without a search: one round per task.

    The cost model is fitted once, before the first candidate is measured, and learns nothing further: what is chosen
    depends on no time of this run.

    Attributes:
        origins: How many candidates were measured, by where they come from.
        ready_s: Seconds in which the cost model learnt what other dispatches showed.
        predicts: Whether it can predict by then.
    """

    origins: Counter[Origin] = field(default_factory=Counter)
    ready_s: float = 0.0
    predicts: bool = False

    def __post_init__(self, model: SharedCostModel | None) -> None:
        start = time.monotonic()
        super().__post_init__(model)
        self.ready_s += time.monotonic() - start

    def chosen(self) -> OneShotResult:
        """Return what was chosen from what."""
        untried = [search for search in self.searches if not search.tried and search.task.key not in self.waiting]
        return OneShotResult(
            dispatches=sum(search.tried > 0 for search in self.searches),
            known=sum(search.history.best_ratio() > 1.0 for search in untried),
            candidates={str(origin): self.origins[origin] for origin in Origin if self.origins[origin]},
            ready_s=self.ready_s if self.predicts else None,
        )

    def _work(self, allowance: Allowance, found: Sequence[FoundTrace]) -> Iterator[Work]:
        del found
        yield from self._untuned_work(allowance)
        self._estimate()
        turns = deque(self._choices())
        while turns:
            search, choice = turns.popleft()
            if allowance.by_time and not allowance.next_round(self._progress(search)):
                self.waiting |= {search.task.key, *(each.task.key for each, _ in turns)}
                break
            yield from self._round(search, choice, allowance, Lookahead(partial(self._upcoming, [*turns][:1])))
        self._log.save_model(self._model)
        self.run.clock.save()

    def _choices(self) -> list[tuple[TaskSearch, Choice]]:
        """Return the tasks that have something to measure, those of most time first, each with what."""
        start = time.monotonic()
        self.predicts = self._model.fit_for_good()
        self.ready_s += time.monotonic() - start
        choices = [(search, self._choice(search)) for search in self.searches]
        return [(search, choice) for search, choice in choices if choice.size]

    def _choice(self, search: TaskSearch) -> Choice:
        options, templates = self.run.options, self.run.templates(search.space)
        estimates = options.check_only or search.estimates
        asked = Asked(search.space.dispatch, self.target)
        return Choice.of(
            search,
            templates,
            picks_per_task(options),
            predicts=self.predicts,
            near=bool(self.run.transfer.sources_of(asked) or search.history.records),
            estimates=estimates,
            earlier=self.run.transfer.starts_of(asked, equal=True),
        )

    def _round(self, search: TaskSearch, choice: Choice, allowance: Allowance, lookahead: Lookahead) -> Iterator[Work]:
        """Measure what was chosen for a task."""
        self.tell(Phase.SEARCH, search.task.name)
        self._log.save(self._rounds() + 1, self.tried)
        known = set(search.history.records)
        limit = self._limit(search, choice.size) if allowance.by_time else choice.size
        outcome = yield from search.round(choice.size, limit, lookahead)
        measured = [key for key in search.history.records if key not in known]
        self.origins.update(choice.origins.get(key, choice.further) for key in measured)
        self._log.save(self._rounds(), self.tried)
        self._tell_errors(outcome)
        self.run.clock.save()
        self._estimate()
        self.tell(Phase.SEARCH, search.task.name)

    def _upcoming(self, following: Sequence[tuple[TaskSearch, Choice]]) -> Upcoming | None:
        """Choose the candidates of the task that follows, if any, and return its scripts."""
        for search, choice in following:
            return Upcoming(search.task, search.prepare(choice.size))
        return None

    def _begin_with_known(self, search: TaskSearch) -> None:
        """Do nothing yet: what is chosen depends on whether the cost model can predict, once all tasks have begun."""

    def _by_share(self) -> list[tuple[int, Task]]:
        """Return (number, task), where there is time for all in an order that no measurement changes.

        What the cost model learns of the tasks' own records would depend on that order.
        """
        return super()._by_share() if self.run.budget.by_time else [*enumerate(self.tasks)]


@dataclass
class OneShot(VariantSearch):
    """What takes the place of a search over variants: one of them gets its candidates, and no algorithm is compared."""

    made_by = OneShotProgram

    @classmethod
    def searched(
        cls, built: Sequence[BuiltVariant], space: Space, target: Target, dominant: Collection[str] = ()
    ) -> Sequence[BuiltVariant]:
        """Return the first variant that dominates the others, else the first."""
        chosen = super().searched(built, space, target, dominant)
        plans = [each.variant.plan for each in chosen]
        dominates = ((plan.refines or plan.whole.name) in dominant for plan in plans)
        return [next((each for each, first in zip(chosen, dominates, strict=True) if first), chosen[0])]

    def _turns(self) -> Turns[None]:
        (program,) = self.programs
        yield program, self.run.budget.rest(elsewhere=0)
