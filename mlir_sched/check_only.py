"""Tuning without a device: candidates are compiled, proven applied, assembled and ranked by a model of the device.

Nothing is run, so nothing is known of numbers and times. What is emitted says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mlir_sched import __version__
from mlir_sched.compiler import WorkerSet
from mlir_sched.emission.expected_time import expected_s
from mlir_sched.emission.export import tuned_sequence
from mlir_sched.emission.finalists import FINALISTS, Finalists, take_finalists
from mlir_sched.errors import UserError
from mlir_sched.evaluation.compiled_code import CompiledCode
from mlir_sched.evaluation.estimated_program import with_estimate
from mlir_sched.evaluation.estimating import CompileAndAssemble
from mlir_sched.evaluation.evaluator import Evaluators
from mlir_sched.evaluation.time_model import modelled_device
from mlir_sched.gpu_model.estimate import VERSION
from mlir_sched.gpu_model.ptxas import find_assembler
from mlir_sched.models.cost_model import CostModelFactory
from mlir_sched.pipeline import open_store
from mlir_sched.preflight import require_what_is_needed
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.building import fastest
from mlir_sched.program.choosing import BuiltVariants
from mlir_sched.program.estimated_variants import estimate_variants
from mlir_sched.program.proof import Proven, Prover
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.search import StrategyFactory, TaskScheduler
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks.model import require_program
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import NOTHING_TO_SCHEDULE, why_unscheduled
from mlir_sched.tensors.parameters import parameter_files
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.tuned_folder.error_log import ErrorLog
from mlir_sched.tuned_folder.estimated_result import EstimatedDispatch, EstimatedResult
from mlir_sched.tuned_folder.installation import install
from mlir_sched.tuned_folder.lock import open_folder
from mlir_sched.tuning.callbacks import Callback, told
from mlir_sched.tuning.folder_claim import claim_of
from mlir_sched.tuning.generation import generation_of
from mlir_sched.tuning.interruption import Interruption
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import (
    STAGES_WITHOUT_DEVICE,
    Monitor,
    Phase,
    PhaseClock,
    Progress,
    ProgressCallback,
    silent,
)
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_choice import VariantChoice
from mlir_sched.tuning.variant_search import VariantSearch


def tune_without_device(
    model: str | Path,
    output: str | Path = "tuned",
    *,
    options: TuneOptions,
    store: str | Path | None = None,
    modules: Sequence[TransformModule] = (),
    parameters: Sequence[str] = (),
    strategy: str | StrategyFactory = "evolutionary",
    cost_model: str | CostModelFactory = "xgboost",
    scheduler: str | TaskScheduler = "gradient",
    callbacks: Sequence[Callback] = (),
    progress: ProgressCallback = silent,
) -> EstimatedResult:
    """Search scripts for a device that need not be there, and write a folder that says that nothing was measured.

    Compiler flags and rewrites of the whole program compete by estimated times, too.

    Args:
        model: Any program that ``iree-compile`` reads.
        output: Folder to write.
        options: Budget, seed and target, e.g. ``TuneOptions(target="cuda:sm_90")``.
        store: Record store; by default ``records.sqlite`` in the output folder. Estimates never meet measured times.
        modules: Further transform modules, put at the front of the default ones.
        parameters: Files with the model's weights, each as ``scope=path``.
        strategy, cost_model, scheduler, callbacks: As for ``pipeline.tune``.
        progress: Called often with the state of the run.

    Raises:
        UserError: The input is at fault, the assembler is missing, or the target has to be a device of this machine.
        ModelCompileError: IREE does not compile the program.
        EnvironmentFailureError, EnvironmentStopError: As for ``pipeline.tune``.
    """
    if options.values:
        raise UserError("without a device nothing is run: --input and --reference have no use with --check-only")
    method = SearchMethod.of(strategy, cost_model, scheduler)
    path, weights, start = require_program(model), parameter_files(parameters), time.monotonic()
    claim = claim_of(path, weights, options, options.target, store=store, modules=modules)
    with open_folder(Path(output), claim) as folder:
        progress(Progress("describing the target"))
        described = absent_target(options.target)
        device = modelled_device(described)
        find_assembler()
        target = replace(described, machine=(*described.machine, ("times", f"estimated by model {VERSION}")))
        space, errors = Space.default(target).led_by(modules, target), ErrorLog(folder)
        code, workers = CompiledCode(FINALISTS), WorkerSet()
        evaluators = Evaluators(
            lambda built: CompileAndAssemble(built.model.task_flags, target, code=code, shared=workers)
        )

        def estimate(built: BuiltVariant, default: BuiltVariant | None) -> BuiltVariant:
            return with_estimate(built, default, evaluators.of(built), device)

        with open_store(store, folder, progress) as records, workers, evaluators:
            require_what_is_needed(path, folder, records, options)
            progress(Progress("compiling the untuned program and estimating its time"))
            generation = generation_of(records, fresh=options.fresh)
            choice = VariantChoice.of(path, target, options, records, start, generation=generation)
            variants = estimate_variants(path, target, weights, choice, estimate)
            choice.keep()
            for text in variants.tracebacks:
                errors.add(text)
            run = TuningRun.of(
                options, target, space, records, variants.built, start=start, method=method, generation=generation
            )
            monitor = Monitor(run, PhaseClock(start), progress, errors.add, STAGES_WITHOUT_DEVICE)
            search = VariantSearch.of(run, variants.built, monitor, _expected, settled=variants.settled)
            with Interruption(run.clock) as interruption:
                for program, work in told(search.work(), callbacks):
                    with run.costs.of(work.kind, work.task.key, work.count):
                        work.run(evaluators.of(program.built))
            found = search.result(interrupted=interruption.happened, stopped=interruption.stopped)
            monitor.on_phase(Phase.EMISSION, found.best.state())
            with interruption.emitting():
                proven, finalists = _emitted(path, variants, found.best, target, code)
            built = proven.variant
            result = EstimatedResult(
                model=str(path),
                target=options.target,
                processor=target.processor,
                seed=options.seed,
                trials=found.tried,
                seconds=time.monotonic() - start,
                interrupted=found.interrupted,
                stopped=found.stopped,
                variant=built.variant.name,
                untuned_s=variants.built[0].measured.median_s,
                tuned_s=expected_s(built, finalists.winners.values()),
                variants={each.variant.name: each.measured.median_s for each in variants.built},
                left_out=dict(variants.left_out),
                dispatches=tuple(_dispatch(task, built, found.best, finalists) for task in built.model.tasks),
                output=str(folder),
                store=records.name,
                versions={"mlir-sched": __version__, "iree-compiler": target.compiler},
                emission=proven.files.emission,
                flags=proven.files.flags,
                notes=() if found.best.tasks else (NOTHING_TO_SCHEDULE,),
            )
            install(folder, claim, proven.files, json.dumps(result.to_json(), indent=2) + "\n")
            return result


def _expected(programs: Sequence[ProgramSearch]) -> dict[str, float]:
    """Return the estimated times of programs with their best scripts, by name."""
    return {program.name: program.expected_s() for program in programs}


def _emitted(
    path: Path, variants: BuiltVariants, best: ProgramSearch, target: Target, code: CompiledCode
) -> tuple[Proven, Finalists]:
    """Prove the best program with its scripts, or the fastest variant without any where the model prefers that.

    Returns:
        The program, and its scripts with the reasons why other dispatches have none.
    """
    finalists = take_finalists([search for search in best.searches if search.history.records], code)
    built, untuned = best.built, fastest(variants.built)
    if expected_s(built, finalists.winners.values()) >= untuned.measured.median_s:
        built, why = untuned, f"by the model the program is no slower without scripts, as {untuned.variant.name}"
        finalists = Finalists({}, {**finalists.reasons, **dict.fromkeys(finalists.winners, why)})
    sequences = {key: tuned_sequence(winner, target) for key, winner in finalists.winners.items()}
    with temporary_folder() as scratch:
        proven = Prover(path, Path(scratch), variants.space).prove(built, sequences)
    winners = {key: winner for key, winner in finalists.winners.items() if key in proven.sequences}
    return proven, Finalists(winners, {**finalists.reasons, **proven.dropped})


def _dispatch(task: Task, built: BuiltVariant, search: ProgramSearch, emitted: Finalists) -> EstimatedDispatch:
    own = next((each for each in search.searches if each.task.key == task.key), None)
    winner = emitted.winners.get(task.key)
    return EstimatedDispatch(
        name=task.name,
        task_key=task.key,
        weight=task.weight,
        untuned_s=built.profile.call_s(task.name) if built.profile else None,
        tuned_s=winner.timing.median_s if winner else None,
        symbol=winner.symbol if winner else "",
        sketch=winner.trace.sketch if winner else "",
        decisions=dict(winner.trace.values) if winner else None,
        trials=own.tried if own else 0,
        failures=dict(own.history.failures()) if own else None,
        note="" if winner else _why_none(task, search, emitted),
    )


def _why_none(task: Task, search: ProgramSearch, emitted: Finalists) -> str:
    known = emitted.reasons.get(task.key) or search.unsearched().get(task.key)
    if known:
        return known
    searched = any(each.task.key == task.key for each in search.searches)
    return "no candidate was tried" if searched else why_unscheduled(task)
