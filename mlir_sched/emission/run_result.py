"""The result of a run: what the search found and what was emitted, put together."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from mlir_sched import __version__
from mlir_sched.corpus.sources import OTHER_MACHINES, Asked, Source
from mlir_sched.database.record import describe, machine_of, measuring_context
from mlir_sched.database.store import RecordStore
from mlir_sched.emission.ablation import ablation
from mlir_sched.emission.export import Emission
from mlir_sched.emission.finalists import Winner
from mlir_sched.program.checking.user_values import untuned_wrong_notes
from mlir_sched.program.repair import repair_notes
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.choosing import BuiltVariants
from mlir_sched.program.variants.tunability import tunable_share
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import NOTHING_TO_SCHEDULE, why_unscheduled
from mlir_sched.tensors.values import digests_of
from mlir_sched.tuned_folder.result import DispatchResult, PredictedVariants, TuneResult, Weights
from mlir_sched.tuned_folder.transferred import SourceResult, TransferResult
from mlir_sched.tuning.one_shot import OneShotProgram
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.task_search import TaskSearch
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_search import SearchResult

OF_DECIDING_SESSION = (
    "the times of the whole program are of the session that decided what is emitted, as no time was left for another "
    "one: the speed-up may be a little too good"
)
"""Note on figures of a session that favours them."""


def result_of(
    run: TuningRun,
    found: SearchResult,
    path: Path,
    emission: Emission,
    folder: Path | None,
    variants: BuiltVariants,
    phases: Mapping[str, float],
) -> TuneResult:
    """Return the result of a run on a model file.

    Args:
        run, found, path, emission, folder, phases: What the run was, found and emitted, and how long that took.
        variants: The variants, with profiles of the default and of the emitted one.
    """
    best = found.best
    default, emitted = variants.built[0], variants.of(best.built.variant)
    widest, widest_share = _widest(run, [emitted, *(program.built for program in found.others)])
    return TuneResult(
        model=str(path),
        target=run.options.result_target,
        threads=run.target.cores,
        seed=run.options.seed,
        trials=found.tried,
        evaluated=found.measured,
        seconds=run.clock.here_s(),
        run_seconds=run.clock.spent_s(),
        phases=phases,
        interrupted=found.interrupted,
        stopped=found.stopped,
        ended_early=found.ended_early,
        lost_figures=emission.lost_figures,
        program=replace(
            emission.program,
            repair=variants.repair,
            weights=_weights(variants, emission.program.variant),
        ),
        left_out={**variants.left_out, **emission.left_out},
        not_run=dict(best.built.model.not_run),
        notes=(
            *repair_notes(variants.repair),
            *(() if best.tasks else (NOTHING_TO_SCHEDULE,)),
            *untuned_wrong_notes(best.built.model),
            *best.built.model.notes,
            *map(_checked_little, emission.program.constant_outputs),
            *((OF_DECIDING_SESSION,) if emission.program.of_deciding_session else ()),
            *filter(None, (emission.lost_figures, *(search.stopped for search in best.searches))),
            *_not_used(run, best),
        ),
        dispatches=_dispatches(best, emitted, emission),
        output=None if folder is None else str(folder),
        store=run.store.name,
        parameters=tuple(map(str, best.built.model.parameters)),
        tunable_share=tunable_share(default, run.space, run.target),
        model_accuracy=_accuracy(best.searches),
        versions={"mlir-sched": __version__, "iree-compiler": run.target.compiler, "numpy": np.__version__},
        emission=emission.files.emission,
        flags=emission.files.flags,
        curves=tuple(program.curve() for program in (best, *found.others) if program.estimates),
        widest_variant=widest,
        widest_share=widest_share,
        values=digests_of(best.built.model.values),
        processor=run.target.processor,
        measured=emitted.was_run,
        transfer=_transferred(best),
        one_shot=best.chosen() if isinstance(best, OneShotProgram) else None,
        predicted=_predicted(variants),
    )


def _transferred(best: ProgramSearch) -> TransferResult | None:
    """Return what the search of a program began from; None where nothing was looked for or searched."""
    transfer, searches = best.run.transfer, best.searches
    if not transfer.digest or not searches:
        return None
    known = [transfer.sources_of(Asked(s.task.dispatch, best.target)) if s.task.dispatch else () for s in searches]
    accuracies = [s.foreseen for s, found in zip(searches, known, strict=True) if found and s.foreseen is not None]
    reached = [(s.believed, s.shown) for s in searches if s.believed is not None and s.tried]
    errors = [abs(belief.error(shown)) for belief, shown in reached]
    held = [belief.holds(shown) for belief, shown in reached]
    return TransferResult(
        searched=len(searches),
        with_sources=sum(bool(found) and search.tried > 0 for search, found in zip(searches, known, strict=True)),
        sources=tuple(_source(each, best.target) for each in dict.fromkeys(s for found in known for s in found)),
        accuracy=float(np.mean(accuracies)) if accuracies else None,
        judged=len(accuracies),
        reach_error=math.exp(float(np.mean(errors))) if errors else None,
        reach_held=float(np.mean(held)) if held else None,
        reach_judged=len(reached),
    )


def _predicted(variants: BuiltVariants) -> PredictedVariants | None:
    """Return what was predicted of the variants; None for nothing."""
    found = variants.foreseen
    return PredictedVariants(found.programs, found.order, found.ratios) if found else None


def _source(source: Source, target: Target) -> SourceResult:
    task = source.measured
    machine = dict(task.target.machine)
    processor = machine.get("cpu") or machine.get("device") or task.target.processor
    place = OTHER_MACHINES if source.is_elsewhere(target) else source.place.value
    used = len(task.legal if source.teaches else task.measured)
    return SourceResult(task.name, describe(task.dispatch), place, processor, task.target.cores, used)


def _weights(variants: BuiltVariants, emitted: str) -> Weights:
    """Return the bytes of weights that calls read, of the default and of a variant, given by its name."""
    size = {built.variant.name: built.model.weight_bytes for built in variants.built}
    return Weights(variants.built[0].model.weight_bytes, size[emitted])


def _widest(run: TuningRun, tuned: Sequence[BuiltVariant]) -> tuple[str, float | None]:
    """Return the variant with the largest part of its time in tunable dispatches, and that part; None without one."""
    known = {built.variant.name: tunable_share(built, run.space, run.target) for built in tuned}
    shares = {name: share for name, share in known.items() if share is not None}
    widest = max(shares, key=shares.__getitem__, default="")
    return widest, shares.get(widest)


def _dispatches(best: ProgramSearch, emitted: BuiltVariant, emission: Emission) -> tuple[DispatchResult, ...]:
    profile, tasks = emitted.profile, emitted.model.tasks
    shares = profile.shares(task.name for task in tasks) if profile else {}
    searches, unsearched = {search.task.key: search for search in best.searches}, best.unsearched()
    return tuple(
        replace(
            _dispatch(task, searches.get(task.key), unsearched, emission),
            in_program_s=profile.call_s(task.name) if profile else None,
            share=shares.get(task.name),
        )
        for task in tasks
    )


def _dispatch(
    task: Task, search: TaskSearch | None, unsearched: Mapping[str, str], emission: Emission
) -> DispatchResult:
    winner: Winner | None = emission.winners.get(task.key)
    history = search.history if search else None
    return DispatchResult(
        name=task.name,
        description=describe(task.dispatch) if task.dispatch else "",
        task_key=task.key,
        weight=task.weight,
        untuned=winner.untuned if winner else history.untuned if history else None,
        tuned=winner.timing if winner else None,
        symbol=winner.symbol if winner else "",
        sketch=winner.trace.sketch if winner else "",
        decisions=dict(winner.trace.values) if winner else None,
        trials=search.tried if search else 0,
        failures=dict(history.failures()) if history else None,
        ablation=ablation(winner.trace, winner.timing, search.history.records.values(), search.space.sketches)
        if winner and search
        else None,
        note="" if winner else _why_untuned(task, search, unsearched, emission),
    )


def _why_untuned(task: Task, search: TaskSearch | None, unsearched: Mapping[str, str], emission: Emission) -> str:
    known = emission.reasons.get(task.key) or unsearched.get(task.key)
    if known:
        return known
    if search is not None and search.stopped:
        return search.stopped
    if search is not None:
        return "its design space has no legal candidate" if search.exhausted else "no candidate was tried"
    return why_unscheduled(task)


def _checked_little(constant_output: str) -> str:
    return f"{constant_output}, so that its check says little"


def _accuracy(searches: Sequence[TaskSearch]) -> float | None:
    judged = [accuracy for search in searches for accuracy in search.strategy.rank_accuracy]
    return float(np.mean(judged)) if judged else None


def _not_used(run: TuningRun, best: ProgramSearch) -> tuple[str, ...]:
    """Return what the store has of other machines and versions where the search does not begin from it."""
    if run.transfer.digest:
        return ()
    return others_measured(run.store, [task.key for task in best.tasks], measuring_context(best.target))


def others_measured(store: RecordStore, task_keys: Iterable[str], context: str) -> tuple[str, ...]:
    """Return one sentence on records that do not count in a context; none if there are no such records.

    Records that differ only in what the user chose, such as the number of threads, are not mentioned.
    """
    own = machine_of(context)
    found: dict[str, set[str]] = {}
    for key in task_keys:
        for other in filter(None, map(machine_of, store.contexts(key))):
            if differing := ", ".join(f"{name} {other.get(name)}" for name in own if other.get(name) != own[name]):
                found.setdefault(differing, set()).add(key)
    if not found:
        return ()
    differing, keys = max(found.items(), key=lambda item: len(item[1]))
    of_all = f"{len(keys)} of the dispatches" if len(keys) > 1 else "a dispatch"
    where = f"from another machine or version ({differing})"
    return (f"the store has records of {of_all} {where}, which are not used without --transfer",)
