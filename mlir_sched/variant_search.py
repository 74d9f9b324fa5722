"""The search over program variants: a share of the budget for every contender, the rest for the most promising one.

What a variant can become shows only when its dispatches are tuned: a rewritten program may be slower than the default
one until scripts are written for it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import Any

from mlir_sched.database import RecordStore
from mlir_sched.evaluate import Evaluator
from mlir_sched.options import DEFAULT_TRIALS_PER_TASK, TuneOptions
from mlir_sched.progress import ProgressCallback
from mlir_sched.search_run import Limit, SearchRun
from mlir_sched.space import Space
from mlir_sched.target import Target
from mlir_sched.trace import Trace
from mlir_sched.variants import BuiltVariant, can_tune, contenders

EXPLORATION = 1 / 3
"""Share of the budget in which every contender is tuned a little, before one is chosen."""
EXCHANGE_SHARE = 1 / 8
"""Share of the budget for trying on every explored contender what was found on the others."""
MAX_EXPLORATION = 1 / 2
"""Share of the budget that a batch per contender may take; the contenders that are slowest untuned give way."""
NOISE = 0.05
"""Relative difference of a program's time and the sum of its dispatches' that says nothing."""


@dataclass
class VariantSearch:
    """Searches for the scripts of the variant that becomes the fastest program.

    Attributes:
        open_evaluator: Makes the evaluator for tasks with these compiler flags; a context manager.
        start: When the run started, by ``time.monotonic()``.
        start_from: Traces that every dispatch whose space knows them tries first.
    """

    options: TuneOptions
    target: Target
    space: Space
    store: RecordStore
    open_evaluator: Callable[[tuple[str, ...]], AbstractContextManager[Evaluator]]
    start: float
    progress: ProgressCallback
    start_from: Sequence[Trace] = ()

    def run(self, built: Sequence[BuiltVariant]) -> tuple[BuiltVariant, SearchRun]:
        """Tune the contenders, the fastest untuned one first, and return the one to emit with its finished search.

        Args:
            built: All variants of the model, the default first; at least one has a dispatch that can be tuned.
        """
        generation = self._generation()
        key = self._key(built, generation)
        limit = self._limit(built)
        worth_tuning = [b.variant.name for b in contenders(built, self.space, self.target)]
        names, steps = self._remembered(f"{key}-contenders", self._exploration(worth_tuning, limit))
        names, spare = names[: len(steps)], names[len(steps) :]
        by_name = {b.variant.name: b for b in built}
        runs = {name: self._search_run(by_name[name], generation, limit) for name in (*names, *spare)}
        for run in runs.values():
            run.others = [other for other in runs.values() if other is not run]
        with ExitStack() as stack:
            evaluators = {}
            for name, stop in zip(names, steps, strict=True):
                evaluators[name] = stack.enter_context(self.open_evaluator(by_name[name].model.flags))
                runs[name].search(evaluators[name], stop)
                if runs[name].interrupted:
                    break
            self._exchange(evaluators, runs, limit)
            best = self._choose(f"{key}-chosen", evaluators, by_name, runs)
            if not _interrupted(runs):
                runs[best].search(evaluators[best], _rest(limit, runs[best]))
            while spare and not _interrupted(runs) and _has_trials(limit, runs[best]):
                name = spare.pop(0)
                evaluators[name] = stack.enter_context(self.open_evaluator(by_name[name].model.flags))
                runs[name].search(evaluators[name], _rest(limit, runs[name]))
                best = self._choose(f"{key}-chosen-{name}", evaluators, by_name, runs)
        runs[best].interrupted = _interrupted(runs)
        return by_name[best], runs[best]

    def _exchange(self, evaluators: Mapping[str, Evaluator], runs: Mapping[str, SearchRun], limit: Limit) -> None:
        """Have every explored contender try what was found on the others, as far as the budget's share reaches.

        The first ones were explored when nothing was known yet.
        """
        for name, evaluator in evaluators.items():
            if _interrupted(runs):
                return
            until = limit
            if limit.trials is not None:
                until = Limit(runs[name].trials + int(limit.trials * EXCHANGE_SHARE / len(evaluators)))
            runs[name].learn_from_others(evaluator, until)

    def _choose(
        self, key: str, tuned: Iterable[str], built: Mapping[str, BuiltVariant], runs: Mapping[str, SearchRun]
    ) -> str:
        """Return the tuned contender that is expected to be the fastest program; a resumed run chooses the same."""
        best = min(tuned, key=lambda name: expected_s(built[name], runs[name]))
        if _interrupted(runs):
            return best
        (best,), _ = self._remembered(key, ([best], []))
        return best

    def _search_run(self, contender: BuiltVariant, generation: int, limit: Limit) -> SearchRun:
        tasks = [task for task in contender.model.tasks if can_tune(task, self.space, self.target)]
        return SearchRun(
            self.options, self.target, self.space, self.store, tasks, self.start, self.progress, self.start_from,
            generation, limit,
        )  # fmt: skip

    def _limit(self, built: Sequence[BuiltVariant]) -> Limit:
        """Return where the whole run ends."""
        if self.options.minutes is not None:
            return Limit(None, self.options.minutes * 60)
        tasks = [sum(can_tune(task, self.space, self.target) for task in b.model.tasks) for b in built]
        return Limit(self.options.trials or DEFAULT_TRIALS_PER_TASK * max(1, *tasks))

    def _exploration(self, names: Sequence[str], limit: Limit) -> tuple[list[str], list[Limit]]:
        """Return the contenders, and where the first search of each that is explored stops: the first of them.

        The others have their turn only when the design spaces of these have nothing left to try.
        """
        batch = self.options.batch
        if limit.trials is None:
            ends = (limit.seconds * EXPLORATION * (i + 1) / len(names) for i in range(len(names)))
            return [*names], [Limit(None, end) for end in ends]
        explored = min(len(names), max(1, int(limit.trials * MAX_EXPLORATION / batch)))
        batches = max(1, int(limit.trials * EXPLORATION / explored / batch))
        return [*names], [Limit(min(limit.trials, batches * batch))] * explored

    def _remembered(self, key: str, found: tuple[list[str], list[Limit]]) -> tuple[list[str], list[Limit]]:
        """Return what an interrupted run decided first, so that a resumed one does the same."""
        names, limits = found
        self.store.add_run(key, {"names": names, "limits": [[limit.trials, limit.seconds] for limit in limits]})
        known: dict[str, Any] = self.store.run_settings(key) or {}
        return known["names"], [Limit(trials, seconds) for trials, seconds in known["limits"]]

    def _key(self, built: Sequence[BuiltVariant], generation: int) -> str:
        asked = [
            {b.variant.name: [task.key for task in b.model.tasks] for b in built},
            [module.name for module in self.space.modules],
            self.options.threads, self.options.seed, self.options.trials, self.options.minutes, generation,
        ]  # fmt: skip
        return "variants-" + hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def _generation(self) -> int:
        """Return how often the user asked for a fresh start in this store."""
        fresh = [key for key in self.store.runs() if key.startswith("fresh-")]
        if self.options.fresh:
            self.store.add_run(f"fresh-{len(fresh)}", {})
            return len(fresh) + 1
        return len(fresh)


def _interrupted(runs: Mapping[str, SearchRun]) -> bool:
    return any(run.interrupted for run in runs.values())


def _rest(limit: Limit, run: SearchRun) -> Limit:
    """Return where a variant's search ends that gets all that is left."""
    return Limit(None if limit.trials is None else limit.trials - run.elsewhere, limit.seconds)


def _has_trials(limit: Limit, run: SearchRun) -> bool:
    return limit.trials is not None and run.trials + run.elsewhere < limit.trials


def expected_s(built: BuiltVariant, run: SearchRun) -> float:
    """Return the seconds that a variant is expected to take with the best scripts so far.

    What its program took besides its tasks counts where it is more than :data:`NOISE`: tasks may become many times
    faster, and then noise of the untuned program would be all that is left.
    """
    if built.timing is None:
        return float("inf")
    untuned_s = sum(search.task.weight * search.untuned.median_s for search in run.searches)
    return max(0.0, (1 - NOISE) * built.timing.median_s - untuned_s) + untuned_s - run.saved_s()
