"""Tuning without a device: candidates are compiled, proven applied, assembled and ranked by a model of the device.

Nothing is run, so nothing is known of numbers and times. What is emitted says so.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mlir_sched.assembly.estimate import VERSION
from mlir_sched.assembly.ptxas import find_assembler
from mlir_sched.database import RecordStore
from mlir_sched.emission.export import tuned_sequence
from mlir_sched.emission.finalists import Finalists, take_finalists
from mlir_sched.emission.proof import Prover
from mlir_sched.parameters import parameter_files
from mlir_sched.pipeline import default_store, nothing_to_tune
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.building import build_variant
from mlir_sched.program.tunability import can_tune
from mlir_sched.program.variant import Variant
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.tasks.model import require_program
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import why_unscheduled
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.tuned_folder.error_log import ErrorLog
from mlir_sched.tuned_folder.estimated_result import EstimatedDispatch, EstimatedResult
from mlir_sched.tuned_folder.installation import install
from mlir_sched.tuned_folder.lock import open_folder
from mlir_sched.tuning.estimating import CompileAndAssemble
from mlir_sched.tuning.generation import generation_of
from mlir_sched.tuning.interruption import Interruption
from mlir_sched.tuning.monitor import STAGES_WITHOUT_DEVICE, Monitor
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.phases import Phase, PhaseClock
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.progress import Progress, ProgressCallback, silent
from mlir_sched.tuning.time_model import modelled_device
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.version import __version__


def tune_without_device(
    model: str | Path,
    output: str | Path = "tuned",
    *,
    options: TuneOptions,
    store: str | Path | None = None,
    modules: Sequence[TransformModule] = (),
    parameters: Sequence[str] = (),
    progress: ProgressCallback = silent,
) -> EstimatedResult:
    """Search scripts for a device that need not be there, and write a folder that says that nothing was measured.

    The program keeps the compiler's default flags: other flags and rewrites are chosen by measured times only.

    Args:
        model: Any program that ``iree-compile`` reads.
        output: Folder to write.
        options: Budget, seed and target, e.g. ``TuneOptions(target="cuda:sm_90")``.
        store: Record store; by default ``records.sqlite`` in the output folder. Estimates never meet measured times.
        modules: Further transform modules, put at the front of the default ones.
        parameters: Files with the model's weights, each as ``scope=path``.
        progress: Called often with the state of the run.

    Raises:
        UserError: The input is at fault, the assembler is missing, or the target has to be a device of this machine.
        ModelCompileError: IREE does not compile the program.
    """
    path, weights, start = require_program(model), parameter_files(parameters), time.monotonic()
    with open_folder(Path(output), options.target) as folder:
        progress(Progress("describing the target"))
        described = absent_target(options.target)
        modelled_device(described)
        find_assembler()
        target = replace(described, machine=(*described.machine, ("times", f"estimated by model {VERSION}")))
        space = Space.default(target).led_by(modules, target)
        with RecordStore.open(store or default_store(folder)) as records:
            progress(Progress("compiling the untuned program"))
            built = build_variant(path, target, Variant(DEFAULT, ()), weights)
            if not any(can_tune(task, space, target) for task in built.model.tasks):
                raise nothing_to_tune(path, built, space)
            generation = generation_of(records, fresh=options.fresh)
            run = TuningRun.of(options, target, space, records, [built], start=start, generation=generation)
            monitor = Monitor(run, PhaseClock(start), progress, ErrorLog(folder).add, STAGES_WITHOUT_DEVICE)
            search = ProgramSearch(run, built, monitor)
            flags = built.model.task_flags
            with CompileAndAssemble(flags, target) as evaluator, Interruption(run.clock) as interruption:
                for work in search.work(run.budget.rest(elsewhere=0)):
                    work.run(evaluator)
            monitor.on_phase(Phase.EMISSION, search.state())
            finalists = take_finalists([each for each in search.searches if each.history.records])
            with temporary_folder() as scratch:
                sequences = {key: tuned_sequence(winner, target) for key, winner in finalists.winners.items()}
                proven = Prover(path, Path(scratch)).prove(built, sequences)
            winners = {key: winner for key, winner in finalists.winners.items() if key in proven.sequences}
            emitted = Finalists(winners, {**finalists.reasons, **proven.dropped})
            result = EstimatedResult(
                model=str(path),
                target=options.target,
                processor=target.processor,
                seed=options.seed,
                trials=search.tried,
                seconds=time.monotonic() - start,
                interrupted=interruption.happened,
                dispatches=tuple(_dispatch(task, search, emitted) for task in built.model.tasks),
                output=str(folder),
                store=records.name,
                versions={"mlir-sched": __version__, "iree-compiler": target.compiler},
                emission=proven.files.emission,
            )
            install(folder, proven.files, json.dumps(result.to_json(), indent=2) + "\n")
            return result


def _dispatch(task: Task, search: ProgramSearch, emitted: Finalists) -> EstimatedDispatch:
    own = next((each for each in search.searches if each.task.key == task.key), None)
    winner = emitted.winners.get(task.key)
    return EstimatedDispatch(
        name=task.name,
        task_key=task.key,
        weight=task.weight,
        untuned_s=own.history.untuned.median_s if own else None,
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
