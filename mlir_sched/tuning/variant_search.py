"""The search over program variants: successive halving, and the rest of the budget for the most promising one.

What a variant can become shows only when its dispatches are tuned: a rewritten program may be slower than the default
one until scripts are written for it, and one of several dispatches needs more candidates until it shows.

Source: Jamieson & Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter Optimization" (2016).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace

from mlir_sched.database import RecordStore
from mlir_sched.database.record import measuring_context
from mlir_sched.program.variants import BuiltVariant, can_tune, contenders, profiled
from mlir_sched.space.design_space import Space
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace
from mlir_sched.tuning.evaluator import Evaluator
from mlir_sched.tuning.options import DEFAULT_TRIALS_PER_TASK, TuneOptions
from mlir_sched.tuning.program_search import Limit, SearchRun
from mlir_sched.tuning.progress import ProgressCallback
from mlir_sched.tuning.run_clock import RunClock

EXPLORATION = 1 / 2
"""Share of the budget before one variant is chosen, the same for every rung: there are two, or log2 of the variants."""
OUT_OF_REACH = 1.5
"""A variant expected to take this many times as long as the best is dropped, whatever its rank."""
NOISE = 0.05
"""Relative difference of a program's time and the sum of its dispatches' that says nothing."""


@dataclass(frozen=True, eq=False)
class Contender:
    """A variant with its search."""

    built: BuiltVariant
    run: SearchRun

    @property
    def name(self) -> str:
        """Name of the variant."""
        return self.built.variant.name

    def expected_s(self) -> float:
        """Return the seconds that the program is expected to take with the best scripts so far.

        What it took besides its tasks counts where it is more than :data:`NOISE`: tasks may become many times faster,
        and then noise of the untuned program would be all that is left.
        """
        if self.built.timing is None:
            return float("inf")
        untuned_s = sum(search.task.weight * search.untuned.median_s for search in self.run.searches)
        return max(0.0, (1 - NOISE) * self.built.timing.median_s - untuned_s) + untuned_s - self.run.saved_s()


Search = Callable[[Contender, Limit], None]
"""Searches a contender up to a limit."""


@dataclass
class VariantSearch:
    """Searches for the scripts of the variant that becomes the fastest program.

    Attributes:
        open_evaluator: Makes the evaluator for the tasks of a variant; a context manager.
        time_programs: Times the programs of several contenders with the best scripts so far, by name, relative to one
            of them; those that fail are missing.
        start: When the run started, by ``time.monotonic()``.
        start_from: Traces that every dispatch whose space knows them tries first.
        begun_s: Seconds on the run's clock when the search began; the programs were compiled and timed before.
    """

    options: TuneOptions
    target: Target
    space: Space
    store: RecordStore
    open_evaluator: Callable[[BuiltVariant], AbstractContextManager[Evaluator]]
    time_programs: Callable[[Sequence[Contender]], Mapping[str, float]]
    start: float
    progress: ProgressCallback
    start_from: Sequence[Trace] = ()
    begun_s: float = 0.0

    def run(self, built: Sequence[BuiltVariant]) -> tuple[BuiltVariant, SearchRun]:
        """Tune the contenders, the fastest untuned one first, and return the one to emit with its finished search.

        Args:
            built: All variants of the model, the default first; at least one has a dispatch that can be tuned.
        """
        generation = self._generation()
        key = self._key(built, generation, self.options.trials, self.options.minutes)
        clock = RunClock(self.store, self._key(built, generation, "clock"), self.start)
        limit = self._limit(built)
        self.begun_s = self._begun_s(f"{key}-begun", clock)
        names = self._remembered(
            f"{key}-contenders", lambda: [b.variant.name for b in contenders(built, self.space, self.target)]
        )
        by_name = {b.variant.name: b for b in built}
        if limit.trials is None:  # by time, the dispatches that matter most come first
            by_name |= {name: profiled(by_name[name], self.target) for name in names}
        tuned = [Contender(by_name[name], self._search_run(by_name[name], generation, limit, clock)) for name in names]
        for contender in tuned:
            contender.run.others = [other.run for other in tuned if other is not contender]
        with ExitStack() as stack:
            evaluators: dict[str, Evaluator] = {}
            numbers = itertools.count()

            def search(contender: Contender, until: Limit) -> None:
                if contender.name not in evaluators:
                    evaluator = stack.enter_context(self.open_evaluator(contender.built))
                    evaluators[contender.name] = evaluator
                self._search(f"{key}-search-{next(numbers)}", contender.run, evaluators[contender.name], until)

            best = self._search_all(key, tuned, search, limit)
        best.run.interrupted = _interrupted(tuned)
        return best.built, best.run

    def _search(self, key: str, run: SearchRun, evaluator: Evaluator, until: Limit) -> None:
        """Search up to a limit; by time, a resumed run ends a search where it ended when it was done first."""
        known = self.store.run_settings(key)
        run.search(evaluator, until if known is None else replace(until, ended=int(known["trials"])))
        if until.trials is None and not run.interrupted:
            self.store.add_run(key, {"trials": run.trials})

    def _search_all(self, key: str, all_of_them: Sequence[Contender], search: Search, limit: Limit) -> Contender:
        """Spend the whole budget and return the best contender."""
        explored, spare = self._affordable(all_of_them, limit)
        best, dropped = self._halve(key, explored, search, limit)
        if not _interrupted(explored):
            search(best, _rest(limit, best.run))
        for contender in (*spare, *dropped):
            if _interrupted(all_of_them) or not _has_trials(limit, best.run):
                break
            search(contender, _rest(limit, contender.run))  # nothing is left to try on the others
            (best,) = self._fastest(f"{key}-chosen-{contender.name}", [best, contender], 1)
        return best

    def _affordable(self, all_of_them: Sequence[Contender], limit: Limit) -> tuple[list[Contender], list[Contender]]:
        """Return those that are explored, and the others: a small budget leaves out those that are slowest untuned."""
        count = len(all_of_them)
        if limit.trials is not None:
            count = max(1, int(limit.trials * EXPLORATION / self.options.batch))
        return [*all_of_them[:count]], [*all_of_them[count:]]

    def _halve(
        self, key: str, explored: Sequence[Contender], search: Search, limit: Limit
    ) -> tuple[Contender, list[Contender]]:
        """Search all of them a little, the better half a little more, and so on.

        Returns:
            The one that is left, and those that were dropped, the last ones first.
        """
        share = EXPLORATION / max(2, math.ceil(math.log2(len(explored))))
        left, dropped = [*explored], list[Contender]()
        rung = 0
        while len(left) > 1 and not _interrupted(explored):
            for place, contender in enumerate(left):
                search(contender, self._until(limit, contender.run, share * rung, share, place, len(left)))
                if contender.run.interrupted:
                    break
            rung += 1
            half = math.ceil(len(left) / 2) if self._may_explore(limit, explored, share * rung) else 1
            kept = self._fastest(f"{key}-rung-{rung}", left, half)
            dropped = [*(contender for contender in left if contender not in kept), *dropped]
            left = kept
        return left[0], dropped

    def _until(self, limit: Limit, run: SearchRun, spent: float, share: float, place: int, count: int) -> Limit:
        """Return where one of ``count`` searches ends that divide a share of the budget."""
        if limit.trials is None:
            left_s = max(0.0, limit.seconds - self.begun_s)
            return Limit(None, self.begun_s + left_s * (spent + share * (place + 1) / count))
        batches = max(1, int(limit.trials * share / count / self.options.batch))
        return Limit(min(run.trials + batches * self.options.batch, limit.trials - run.elsewhere))

    def _may_explore(self, limit: Limit, explored: Sequence[Contender], spent: float) -> bool:
        """Say whether the budget has room for another rung; whole batches may have made the last ones larger."""
        if limit.trials is not None:
            spent = sum(contender.run.trials for contender in explored) / limit.trials
        return spent < EXPLORATION

    def _fastest(self, key: str, tuned: Sequence[Contender], most: int) -> list[Contender]:
        """Return at most so many contenders, the fastest ones; the same in a resumed run.

        Those whose expected times are close are told apart by their programs.
        """
        ranked = sorted(tuned, key=Contender.expected_s)
        near_s = OUT_OF_REACH * ranked[0].expected_s()
        near = [contender for contender in ranked if contender.expected_s() <= near_s]
        if _interrupted(tuned):
            return near[:most]
        by_name = {contender.name: contender for contender in tuned}

        def fastest() -> list[str]:
            if len(near) > most:
                times = self.time_programs(near)
                near.sort(key=lambda one: times.get(one.name, math.inf))  # stable: as expected without times
            return [contender.name for contender in near[:most]]

        try:
            return [by_name[name] for name in self._remembered(key, fastest)]
        except KeyboardInterrupt:
            near[0].run.interrupted = True
            return near[:most]

    def _begun_s(self, key: str, clock: RunClock) -> float:
        """Return when the search began; a resumed run divides what was left then."""
        self.store.add_run(key, {"seconds": clock.spent_s()})
        known = self.store.run_settings(key)
        assert known is not None
        return float(known["seconds"])

    def _search_run(self, contender: BuiltVariant, generation: int, limit: Limit, clock: RunClock) -> SearchRun:
        tasks = [task for task in contender.model.tasks if can_tune(task, self.space, self.target)]
        profile = contender.profile
        shares = profile.shares(task.name for task in contender.model.tasks) if profile else {}
        return SearchRun(
            self.options, contender.on(self.target), self.space, self.store, tasks, clock, self.progress,
            self.start_from, generation, limit, shares,
        )  # fmt: skip

    def _limit(self, built: Sequence[BuiltVariant]) -> Limit:
        """Return where the whole run ends."""
        if self.options.minutes is not None:
            return Limit(None, self.options.minutes * 60)
        tasks = [sum(can_tune(task, self.space, self.target) for task in b.model.tasks) for b in built]
        return Limit(self.options.trials or DEFAULT_TRIALS_PER_TASK * max(1, *tasks))

    def _remembered(self, key: str, decide: Callable[[], list[str]]) -> list[str]:
        """Return what is decided, or what an interrupted run or another process decided first: all do the same."""
        if self.store.run_settings(key) is None:
            self.store.add_run(key, {"names": decide()})
        known = self.store.run_settings(key)
        assert known is not None
        return list(known["names"])

    def _key(self, built: Sequence[BuiltVariant], generation: int, *further: object) -> str:
        """Return the key of something that is decided once for a program, a machine and a way to search."""
        asked = [
            {b.variant.name: [task.key for task in b.model.tasks] for b in built},
            [module.name for module in self.space.modules],
            measuring_context(self.target, generation=generation),
            self.options.seed, self.options.batch, self.options.strategy, repr(self.options.evolution),
            [trace.key for trace in self.start_from], *further,
        ]  # fmt: skip
        return "variants-" + hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def _generation(self) -> int:
        """Return how often the user asked for a fresh start in this store; no two fresh starts have one number."""
        generation = sum(key.startswith("fresh-") for key in self.store.runs())
        if self.options.fresh:
            while not self.store.add_run(f"fresh-{generation}", {}):
                generation += 1  # another process was faster
            generation += 1
        return generation


def _interrupted(tuned: Iterable[Contender]) -> bool:
    return any(contender.run.interrupted for contender in tuned)


def _rest(limit: Limit, run: SearchRun) -> Limit:
    """Return where a variant's search ends that gets all that is left."""
    return Limit(None if limit.trials is None else limit.trials - run.elsewhere, limit.seconds)


def _has_trials(limit: Limit, run: SearchRun) -> bool:
    return limit.trials is not None and run.trials + run.elsewhere < limit.trials
