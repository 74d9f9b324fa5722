"""Tuning a model, start to end: variants, tasks, search rounds, finalists, emission, end-to-end proof."""

import json
import time
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from mlir_sched.corpus.places import given_store
from mlir_sched.corpus.sources import Place
from mlir_sched.database import RecordStore
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.database.record import StoredTask
from mlir_sched.database.user_store import UserStore, user_store_file
from mlir_sched.database.work_cost import WorkKind
from mlir_sched.emission.run_result import result_of
from mlir_sched.evaluation.evaluator import Evaluators
from mlir_sched.meter import Meter, meter_of
from mlir_sched.models.cost_model import CostModelFactory
from mlir_sched.preflight import require_what_is_needed
from mlir_sched.program.building import fastest
from mlir_sched.program.checking.captured_values import ValueRecorder
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.other_algorithms import Algorithms
from mlir_sched.program.variants.weight_bound import WeightBound
from mlir_sched.search import StrategyFactory, TaskScheduler
from mlir_sched.space.space import Space
from mlir_sched.tasks.model import require_program
from mlir_sched.tensors.parameters import parameter_files
from mlir_sched.text import threads
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.tuned_folder.claim import claim_of
from mlir_sched.tuned_folder.error_log import ErrorLog
from mlir_sched.tuned_folder.installation import install
from mlir_sched.tuned_folder.lock import open_folder
from mlir_sched.tuned_folder.pictures import Curve
from mlir_sched.tuned_folder.report import write_report
from mlir_sched.tuned_folder.result import TuneResult
from mlir_sched.tuning.algorithm_choice import AlgorithmChoice
from mlir_sched.tuning.callbacks import Callback, Interruption, with_callbacks
from mlir_sched.tuning.journal import generation_of, tuned_program
from mlir_sched.tuning.one_shot import OneShot, SettledVariant, require_candidates, without_search
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.progress import Monitor, Phase, PhaseClock, Progress, ProgressCallback, silent
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.transfer import TransferPlan
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_choice import VariantChoice
from mlir_sched.tuning.variant_search import VariantSearch

STORE_PATIENCE_S = 600.0
"""Seconds that a run waits for a record store that another process holds: a backup of a large store takes minutes."""


def tune(
    model: str | Path,
    output: str | Path | None = "tuned",
    *,
    options: TuneOptions | None = None,
    store: str | Path | None = None,
    space: Space | None = None,
    modules: Sequence[TransformModule] = (),
    start_from: Sequence[Trace] = (),
    parameters: Sequence[str] = (),
    strategy: str | StrategyFactory = "evolutionary",
    cost_model: str | CostModelFactory = "xgboost",
    scheduler: str | TaskScheduler = "gradient",
    callbacks: Sequence[Callback] = (),
    progress: ProgressCallback = silent,
) -> TuneResult:
    """Tune a model for this machine and write a folder that a plain ``iree-compile @tuned/flags.txt`` uses.

    Args:
        model: Any program that ``iree-compile`` reads.
        output: Folder to write; None writes nothing.
        options: Budget, seed, target and so on. With 0 trials there is no search: a few candidates of every dispatch
            are chosen from what is known, and measured.
        store: Record store (SQLite file or SQLAlchemy URL); by default ``records.sqlite`` in the output folder.
        space: Transform modules; by default ``Space.default(target)``.
        modules: Further transform modules, put at the front of the space in their order.
        start_from: Traces that every dispatch whose space knows them tries first, e.g. those of scripts edited by hand
            (``parse_traces(text).values()``); decisions that do not fit a dispatch are repaired.
        parameters: Files with the model's weights, each as ``scope=path`` (``iree-run-module --parameters``).
        strategy: Chooses the candidates of a task: ``evolutionary``, ``random``, a registered name, or what makes a
            strategy, such as a subclass of ``SearchStrategy`` or ``EvolutionaryOptions``.
        cost_model: Predicts which candidates are fast: ``xgboost``, ``quantile``, ``random``, a registered name, or
            what makes a model, such as a subclass of ``CostModel`` or ``XGBoostOptions``.
        scheduler: Chooses the task of each round: ``gradient``, ``round-robin``, a registered name, or a
            ``TaskScheduler``.
        callbacks: Are called with every outcome (``Trial``) once it is stored. An exception ends the search as Ctrl-C
            does: what was found is emitted, and ``TuneResult.stopped`` says why.
        progress: Called often with the state of the run.

    Returns:
        What was found. Every emitted script is proven applied, its numbers are checked, and the emitted program is
        no slower than the untuned one. With ``TuneOptions.check_only`` nothing is run: scripts are proven applied, and
        what is faster follows from estimates; ``TuneResult.measured`` is False.

    Raises:
        UserError: The input is at fault, another run writes into the output folder, or the result would replace what is
            not an earlier result of this model there; nothing that was measured is lost.
        EnvironmentStopError: The machine failed so often in a row that the search stopped, and nothing could be emitted
            either; what was measured is kept. Where something could be emitted, ``TuneResult.stopped`` says why the
            search stopped.
        EnvironmentFailureError: The machine fails outside of the search.
    """
    options, method = options or TuneOptions(), SearchMethod.of(strategy, cost_model, scheduler)
    if options.is_one_shot:
        method = without_search(method)
    path = require_program(model)
    weights = parameter_files(parameters)
    user_file = None if options.check_only else user_store_file(options.user_store)
    if options.transfer_store:
        given_store(options.transfer_store).close()  # refused before anything is compiled
    start = time.monotonic()
    claim = claim_of(
        path, weights, options.target, options.result_target, replace=options.replace, store=store, modules=modules
    )
    with nullcontext() if output is None else open_folder(Path(output), claim) as folder:
        progress(Progress("detecting the target"))
        meter = meter_of(path, options)
        target = meter.target
        choosing, searching = VariantChoice, VariantSearch
        if options.is_one_shot:
            require_candidates(options, start_from, modelled=options.check_only or meter.drawn > 1)
            choosing, searching = SettledVariant, OneShot
        stage = first_stage(meter, options)
        options = replace(options, threads=target.cores)
        space = (space or Space.default(target)).led_by(modules, target)
        errors = ErrorLog(folder)
        with open_store(store, folder, progress) as records, UserStore(user_file, records) as users:
            require_what_is_needed(path, folder, records, options)
            progress(Progress(stage))
            generation = generation_of(records, fresh=options.fresh)
            early_notes = list[str]()

            def tell(text: str) -> None:
                """Tell the user at once, and once, what is in the notes of the result, too."""
                if text not in early_notes:
                    early_notes.append(text)
                    progress(Progress(stage, note=text))

            choice = choosing.of(
                path,
                target,
                options,
                records,
                start,
                generation=generation,
                user_file=user_file,
                note=tell,
            )
            with meter.workers, Evaluators(meter.evaluator) as evaluators:
                local_sync = options.device is None
                with meter.programs(evaluators, weights) as programs:
                    most = options.max_weights
                    variants = build_variants(programs, choice, local_sync=local_sync, most_weights=most)
                choice.keep()
                plan = TransferPlan.of(options, records, user_file, generation, tell, fresh=choice.is_fresh)
                for text in variants.tracebacks:
                    errors.add(text)
                run = TuningRun.of(
                    options,
                    target,
                    space,
                    records,
                    variants.built,
                    start=start,
                    method=method,
                    generation=generation,
                    start_from=start_from,
                    drawn=meter.drawn,
                    transfer=plan,
                    searched=OneShot.searched(variants.built, space, target, variants.dominant)
                    if options.is_one_shot
                    else (),
                    ledger=choice.ledger,
                )
                users.begin_from(each.task.key for each in run.transfer.sources if each.place is Place.USER)
                phases = PhaseClock(start)
                monitor = Monitor(run, phases, progress, errors.add, meter.stages)
                opened, sites = partial(meter.programs, evaluators, weights), variants.space.sites
                algorithms = Algorithms(path, target, fastest(variants.built), opened, sites, weights)
                search = searching.of(
                    run,
                    variants.built,
                    monitor,
                    meter.interim,
                    AlgorithmChoice(run, algorithms, WeightBound.of(most, variants.built[0].model)),
                    variants.dominant,
                    ValueRecorder.of(target, run.budget.whole_s).with_values,
                    programs.profiled,
                )
                with Interruption(run.clock) as interruption:
                    for program, work in with_callbacks(search.work(), callbacks):
                        with run.ledger.counting(work.kind, work.task.key, work.count):
                            work.run(evaluators.of(program.built))
                        if users.takes:
                            with suppress(StoreOutageError):  # of the run's own store: its next access says so
                                users.add(StoredTask.of(work.task, program.target), work.measured())
            found = search.result(interrupted=interruption.happened, stopped=interruption.stopped)
            users.finish(wait=not interruption.early)
            best, variants = found.best, variants.with_variant(found.best.built, found.left_out)
            monitor.on_phase(Phase.FINALISTS, best.state())
            emission_s = run.ledger.emission_s(variants.built, best.built, best.expected_s())
            seconds = run.budget.finalists_s(run.clock.spent_s(), emission_s)
            searches = [search for search in best.searches if search.history.records]
            with interruption.emitting():
                finalists = meter.finalists(searches, best.built, seconds, run.ledger)
                monitor.on_phase(Phase.EMISSION, best.state())
                if not interruption.early:
                    run.ledger.until = time.monotonic() + run.budget.whole_s - run.clock.spent_s()
                with run.ledger.counting(WorkKind.EMISSION, best.name):
                    emission = meter.emission(variants, best.built, finalists, run.ledger)
                variants = variants.profiled(best.built, target)
                result = result_of(run, found, path, emission, folder, variants, phases.seconds())
                decided = result.program.decisions, result.program.tuned.ratio, found.algorithms
                tuned = tuned_program(choice.context_key, variants, target, *decided, emission.left_out)
                users.add_program(tuned)
                users.finish(wait=not interruption.early)
                notes = [*early_notes, *([users.note] if users.note else [])]
                try:
                    records.keep_program(tuned)
                except StoreOutageError as error:
                    notes.append(f"later runs do not begin with this program: {error}")
                result = replace(result, notes=(*result.notes, *notes))
                if folder is not None:
                    install(folder, claim, emission.files, json.dumps(result.to_json(), indent=2) + "\n")
                    curves = [Curve(search.task.name, search.history.ratios()) for search in best.searches]
                    write_report(folder, claim.source, result, curves)
            return result


def first_stage(meter: Meter, options: TuneOptions) -> str:
    """Return what a run does first, and on how many threads programs run on the CPU."""
    target = meter.target
    place = f" on {threads(target.cores, chosen=options.threads is not None)}" if target.driver.on_host else ""
    return meter.stages[Phase.VARIANTS] + place


def open_store(store: str | Path | None, folder: Path | None, progress: ProgressCallback) -> RecordStore:
    """Return the record store of a run, which is waited for, and said to be, while another process holds it."""
    place = store or default_store(folder)
    return RecordStore.open(place, timeout_s=STORE_PATIENCE_S, note=lambda text: progress(Progress(text)))


def default_store(folder: Path | None) -> Path:
    """Return the path of the record store when the user names none."""
    return (folder or Path.cwd()) / "records.sqlite"
