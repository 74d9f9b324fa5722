"""The replay of a tuned folder: every script is applied, checked and timed again, on this machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mlir_sched.compiler import (
    CompilerPool,
    ModelCompileError,
    Shown,
    TunedDispatch,
    compile_showing,
    compile_to_bytes,
)
from mlir_sched.emission.acceptance import NO_LOSS
from mlir_sched.emission.final_measurement import (
    ProgramFailedError,
    ProgramTimings,
    compile_scripts,
    measure_compiled,
    measure_program,
)
from mlir_sched.emission.provenance import measurement
from mlir_sched.errors import UserError
from mlir_sched.library.library import provenance_of, with_provenance
from mlir_sched.outcome import Timing, Verdict, verdict_of
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.checking.usable_functions import with_usable_functions
from mlir_sched.program.checking.user_values import against_reference, untuned_wrong_notes, with_values
from mlir_sched.program.loading import measure_loading
from mlir_sched.program.plan import Plan
from mlir_sched.program.repair import ProgramRepair, repaired_texts
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.rewritten import program_repair
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.replaying.program_state import ProgramJudgement, judge_program, require_own_flags
from mlir_sched.replaying.replay_result import NOT_IN_EDITED, ReplayedSequence, ReplayResult
from mlir_sched.replaying.replayed_folder import require_output, write_replayed
from mlir_sched.replaying.script_state import Judgement, ScriptState, judge
from mlir_sched.runner import BaselineError, Runner, RunnerOptions, RunResult
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import available_cpus, described_by, detect_target, target_kind
from mlir_sched.targets.processor import CPU, HOST, flag_values, processor_difference
from mlir_sched.targets.target import Target, in_calling_thread
from mlir_sched.tasks import Model, extract
from mlir_sched.tasks.model import require_program
from mlir_sched.tasks.shown import Recipe
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.given_values import Values, function_values
from mlir_sched.tensors.parameters import ParameterFile, parameter_files
from mlir_sched.tensors.values import digests_of
from mlir_sched.text import speedup
from mlir_sched.transform_scripts.module import TransformModule
from mlir_sched.transform_scripts.script.reading import extract_sequence, parse_each_trace, replace_sequence
from mlir_sched.tuned_folder.claim import Claim, claim_of
from mlir_sched.tuned_folder.folder import (
    TunedFolder,
    on_processor_of,
    read_tuned_folder,
    require_target,
    require_usable_fields,
    target_name,
)
from mlir_sched.tuned_folder.names import LIBRARY
from mlir_sched.tuned_folder.result import reference_name
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.progress import Progress, ProgressCallback, silent


def replay(
    tuned: str | Path,
    model: str | Path,
    *,
    modules: Sequence[TransformModule] = (),
    parameters: Sequence[str] = (),
    target: str = "",
    target_description: Path | None = None,
    output: str | Path | None = None,
    inputs: Values = (),
    reference: Values = (),
    progress: ProgressCallback = silent,
) -> ReplayResult:
    """Check a tuned folder against a model on this machine, with this compiler. The folder is not changed.

    A tuned folder is code: its library runs in the compiler, and what is compiled is run. Do not replay one that you do
    not trust.

    A number edited by hand in the library is honoured when the design space allows it: the rest of the script that
    depends on it is generated anew. So is a decision about the whole program: its rewrite is generated anew.

    Args:
        modules: The further transform modules it was tuned with.
        parameters: Files with the model's weights, each as ``scope=path``; by default those it was tuned with.
        target: The folder's target with a device, as for ``tune``; by default the target alone.
        target_description: A file that says more of the device, as for ``tune``.
        output: Folder to write, if all numbers are right: a tuned folder with what follows from edited decisions. Not
            the one that is replayed, nor one that holds the result of a search: their reports and figures stay.
        inputs, reference: Values that the whole program is checked and timed with, as in ``TuneOptions``.

    Raises:
        UserError: The folder, the model or the values cannot be used, or ``tune`` does not write flags of the folder.
        ScriptError: The library is not MLIR.
    """
    values = function_values(inputs, reference)
    folder = read_tuned_folder(Path(tuned))
    require_usable_fields(folder.summary)
    weights = parameter_files(parameters or folder.summary.get("parameters", ()))
    progress(Progress("compiling the model"))
    threads = folder.threads
    provenance = provenance_of(folder.library) if folder.library else {}
    if folder.summary.get("measured") is False:
        raise UserError(f"{folder.path}: nothing to replay: its scripts were chosen by estimates and never run")
    if threads > available_cpus():
        raise UserError(
            f"{folder.path}: tuned for {threads} threads, and this process may use {available_cpus()}; replay it where "
            "there are as many, or tune anew"
        )
    named = described_by(target or _target_name(folder, provenance), target_description)
    here = detect_target(named, threads)
    claim = None if output is None else _claim(Path(output), folder, Path(model), weights, named, modules)
    processor = target_kind(here.name).processor
    require_target(folder, here, provenance, processor)
    elsewhere = other_processor(folder, here)
    folder = on_processor_of(folder, here, processor)
    require_own_flags(folder, here)
    progress(Progress("checking the decisions about the program"))
    repair = program_repair(require_program(model), here)
    judged = judge_program(folder, Path(model), here, repair)
    folder = judged.folder
    extra = tuple(flag for flag in folder.flags if flag not in here.flags)
    extracted = with_values(extract(model, here, extra, folder.library, parameters=weights), values)
    space = Space.default(here).led_by(modules, here)
    local_sync = in_calling_thread(folder.device)
    own = replace(here, cores=1) if local_sync else here
    run = _Replay(
        judged, repair, provenance, Path(model), extracted, own, space, threads, local_sync, progress, elsewhere
    )
    result = run.run()
    if output is not None and claim is not None and result.is_right:
        measured = {"untuned": result.untuned, "tuned": result.program}
        timings = {name: timing for name, timing in measured.items() if timing is not None}
        scripts = {s.symbol: s.timing for s in result.sequences if s.timing is not None}
        library = run.measured_library(result)
        write_replayed(Path(output), folder, library, here, claim, timings, scripts, result.loading)
    return result


def other_processor(folder: TunedFolder, here: Target) -> str:
    """Return that a folder's flags name another processor than this machine's; empty where they name no other one."""
    flags = flag_values(folder.flags)
    difference = "" if flags.get(CPU) == HOST else processor_difference(flags, flag_values(here.flags))
    if not difference:
        return ""
    return (
        f"{folder.path / 'flags.txt'} is for the processor {difference}; all figures are of code for this machine, "
        f"and replay {folder.path} MODEL -o FOLDER writes a folder for it"
    )


def _claim(
    output: Path,
    folder: TunedFolder,
    model: Path,
    parameters: Sequence[ParameterFile],
    target: str,
    modules: Sequence[TransformModule],
) -> Claim:
    """Return the claim on the folder to write.

    Raises:
        UserError: The model is missing, or something in the folder would be lost.
    """
    path, name = require_program(model), target.partition(":")[0]
    claim = claim_of(path, parameters, target, name, modules=modules)
    claim = replace(claim, advice="choose another folder with -o")
    require_output(output, folder.path, claim)
    return claim


def _target_name(folder: TunedFolder, provenance: Mapping[str, Mapping[str, str]]) -> str:
    """Return the target that a folder says it was tuned for, by default the default target of ``tune``."""
    noted = filter(None, map(target_name, provenance.values()))
    return str(folder.summary.get("target") or next(noted, TuneOptions().target))


@dataclass
class _Replay:
    judged: ProgramJudgement
    repair: ProgramRepair
    provenance: Mapping[str, Mapping[str, str]]
    path: Path
    model: Model
    target: Target
    space: Space
    threads: int
    local_sync: bool
    progress: ProgressCallback
    elsewhere: str

    @property
    def folder(self) -> TunedFolder:
        """The folder with the library and the flags that its decisions lead to."""
        return self.judged.folder

    def library(self) -> str:
        """Return the library with what follows from edited decisions; empty for a folder without a library."""
        library = self.folder.library
        for sequence, judgement, _ in self._judged:
            if judgement.script:
                library = replace_sequence(library, sequence.symbol, judgement.script)
        return library

    def measured_library(self, result: ReplayResult) -> str:
        """Return the library with what this replay has measured of each sequence, in place of what it said before."""
        tasks = {sequence.symbol: task for sequence, _, task in self._judged}
        measured = {
            sequence.symbol: measurement(task, self.target, sequence.code, sequence.timing)
            for sequence in result.sequences
            if sequence.timing is not None and (task := tasks[sequence.symbol]) is not None
        }
        return with_provenance(self.library(), measured) if measured else self.library()

    def run(self) -> ReplayResult:
        judged, library = self._judged, self.library()
        with Runner(RunnerOptions.final(self.target.driver, threads=self.target.cores)) as runner:
            sequences = self._measure_all(judged, library, runner)
        with Runner(RunnerOptions.final(self.target.driver, threads=self.threads)) as runner:
            return self._with_program(sequences, library, runner)

    @cached_property
    def _judged(self) -> list[tuple[ReplayedSequence, Judgement, Task | None]]:
        if not self.folder.library:
            return []
        traces = parse_each_trace(self.folder.library)
        emitted = _emitted_decisions(self.folder.summary)
        judged = []
        for symbol, found in traces.items():
            origin = self.provenance[symbol]
            task = self._task(origin)
            space = DesignSpace(self.space, task.dispatch, self.target) if task and task.dispatch else None
            judgement = judge(self.folder.library, symbol, found, space, emitted.get(symbol))
            name, then = origin.get("dispatch", ""), origin.get("speedup", "")
            judged.append((ReplayedSequence(symbol, name, judgement.state, judgement.note, then), judgement, task))
        return judged

    def _task(self, origin: Mapping[str, str]) -> Task | None:
        """Return the task of a sequence: one with the same code and target, or else one with the same name.

        A program whose decisions were edited has other dispatches of the same names.
        """
        tasks = self.model.tasks
        same_code = (task for task in tasks if task.key == origin.get("task"))
        same_name = (task for task in tasks if task.name == origin.get("dispatch"))
        return next(same_code, None) or (None if self._is_edited else next(same_name, None))

    @property
    def _is_edited(self) -> bool:
        """Whether the program has other dispatches than when it was tuned."""
        return self.judged.state is ScriptState.EDITED

    def _measure_all(
        self, judged: Sequence[tuple[ReplayedSequence, Judgement, Task | None]], library: str, runner: Runner
    ) -> list[ReplayedSequence]:
        if not judged:
            return []
        measured = []
        with CompilerPool(self.model.flags) as pool:
            for sequence, _, task in judged:
                self.progress(Progress(f"measuring {sequence.dispatch or sequence.symbol}"))
                if task is None and self._is_edited:
                    measured.append(replace(sequence, note=NOT_IN_EDITED))
                    continue
                if sequence.state is ScriptState.REFUSED or task is None or task.dispatch is None:
                    problem = f"{sequence.state}: {sequence.note}"
                    measured.append(replace(sequence, problems=(problem,)))
                    continue
                script = extract_sequence(library, sequence.symbol)
                measured.append(_measured(sequence, task, script, pool, runner))
        return measured

    def _with_program(self, sequences: Sequence[ReplayedSequence], library: str, runner: Runner) -> ReplayResult:
        """Compile the program with the library, count the dispatches that scripts are applied to, and measure it."""
        problems = [problem for problem in (self.folder.problem, self.elsewhere) if problem]
        verdict, timings = Verdict.NOT_CHECKED, None
        if self.judged.state is ScriptState.REFUSED:
            problems.append(f"a decision about the whole program is refused: {self.judged.note}")
        elif any(sequence.state is ScriptState.REFUSED for sequence in sequences):
            problems.append("the whole program was not measured, because a script is refused")
        else:
            self.progress(Progress("measuring the whole program"))
            try:
                sequences, timings = self._measure_program(sequences, library, runner)
                reference = reference_name(repaired=self.repair.script is not None)
                problems += _program_problems(timings.emitted, self.folder.summary, reference)
            except (ModelCompileError, BaselineError) as error:
                problems.append(str(error))
                verdict = verdict_of(error.failure) if isinstance(error, ProgramFailedError) else verdict
        tuned = self.folder.summary.get("program", {}).get("tuned", {})
        untuned, program = (timings.untuned, timings.emitted) if timings else (None, None)
        return ReplayResult(
            str(self.path), str(self.folder.path), tuple(sequences), untuned, program, tuned.get("ratio"),
            tuple(problems), tuple(self._notes()), self.judged.state, self.judged.note,
            timings.verdict if timings else verdict, digests_of(self.model.values),
            timings.inside if timings else (), timings.loading if timings else None,
        )  # fmt: skip

    def _measure_program(
        self, sequences: Sequence[ReplayedSequence], library: str, runner: Runner
    ) -> tuple[list[ReplayedSequence], ProgramTimings]:
        with temporary_folder() as scratch:
            file = Path(scratch) / LIBRARY if library else None
            if file is not None:
                file.write_text(library)
            shown = (Shown.SCRIPTS,) if library else ()
            emitted = compile_showing(self.path, self.model.flags, file, shown)
        untuned, applied = self._untuned(), emitted.scripts
        tuned = CompiledModel(emitted.vmfb, self.local_sync, Recipe(self.model.flags, library, applied))
        run = with_usable_functions(runner, self.model, untuned)
        self.model = against_reference(runner, run, untuned)
        timings = measure_program(runner, self.model, untuned, {}, tuned)
        timings = replace(timings, loading=measure_loading(runner.options, self.model, untuned, tuned))
        return [_with_dispatches(s, applied) for s in sequences], timings

    def _untuned(self) -> CompiledModel:
        """Return the program without scripts that all are compared with, repaired where it needs a repair."""
        library = self.repair.of(Variant(Plan())).library
        with temporary_folder() as scratch:
            file = Path(scratch) / LIBRARY if library else None
            if file is not None:
                file.write_text(library)
            return CompiledModel(
                compile_to_bytes(self.path, self.target.flags, file), recipe=Recipe(self.target.flags, library)
            )

    def _notes(self) -> list[str]:
        notes = [f"@{name} is neither run nor timed: {why}" for name, why in self.model.not_run.items()]
        notes += repaired_texts(self.repair.forms)
        notes += untuned_wrong_notes(self.model)
        if self.folder.summary and digests_of(self.model.values) != self.folder.summary.get("values", {}):
            notes.append("the program was tuned with other values of --input and --reference, or without any")
        for origin in self.provenance.values():
            if origin.get("target_key") not in (None, self.target.key):
                notes.append(
                    f"tuned for {origin.get('target', 'another target')} with {origin.get('versions', 'others')}; "
                    f"this machine or compiler (iree-compiler {self.target.compiler}) differs"
                )
        if not self.folder.summary:
            notes.append(
                "summary.json is missing or of another library: edited decisions cannot be told from emitted ones"
            )
        return sorted(set(notes))


def _measured(
    sequence: ReplayedSequence, task: Task, script: str, pool: CompilerPool, runner: Runner
) -> ReplayedSequence:
    """Return a sequence with what its script does now, from a single measurement."""
    (compiled,) = compile_scripts([(task, [script])], pool)
    try:
        result = measure_compiled(task, compiled, [0], runner)[1][0]
    except BaselineError as error:
        return replace(sequence, problems=(str(error),))
    return replace(_with_result(sequence, result), code=compiled[1].code)


def _with_result(sequence: ReplayedSequence, result: RunResult) -> ReplayedSequence:
    sequence = replace(sequence, timing=result.timing, verdict=result.verdict)
    if result.valid is None:
        return replace(sequence, problems=(result.why_not_valid.splitlines()[0],))
    problem = _no_win(result.valid, "the untuned dispatch")
    return replace(sequence, problems=(problem,) if problem else ())


def _no_win(timing: Timing, other: str) -> str:
    """Return a text that says that a timing is not faster, and how certain that is; empty when it is faster."""
    if timing.ratio_low > 1.0:
        return ""
    if timing.ratio_high < 1.0:
        return f"slower than {other} now: {speedup(timing)}"
    return f"not shown to be faster than {other} now: {speedup(timing)}"


def _with_dispatches(sequence: ReplayedSequence, applied: Sequence[TunedDispatch]) -> ReplayedSequence:
    """Return a sequence with the number of dispatches it is applied to, and with a problem for each mismatch.

    It must be applied to at least one dispatch, and the code of each must be the code that was measured alone.
    """
    own = [dispatch for dispatch in applied if dispatch.sequence == sequence.symbol]
    problems = [] if own or not sequence.is_needed else ["it does not apply to any dispatch of the model"]
    other = [dispatch.name for dispatch in own if sequence.code and dispatch.code != sequence.code]
    problems += [f"its code in @{name} is not the code that was measured" for name in other]
    return replace(sequence, applied=len(own), problems=(*sequence.problems, *problems))


def _program_problems(program: Timing, summary: Mapping[str, Any], reference: str) -> list[str]:
    """Return why the program does not hold: it is slower, or no longer faster although it was; empty when it holds.

    Args:
        reference: What the untuned program is called.
    """
    gained = bool(summary.get("program", {}).get("gained", True))
    if gained:
        problem = _no_win(program, reference)
        return [f"the whole program is {problem}"] if problem else []
    if program.ratio_high < NO_LOSS:
        return [f"the whole program is slower than {reference} now: {speedup(program)}"]
    return []


def _emitted_decisions(summary: Mapping[str, Any]) -> dict[str, dict[str, Value]]:
    """Return the decisions of every sequence as they were emitted, by symbol.

    Raises:
        UserError: ``summary.json`` is damaged.
    """
    try:
        return {
            dispatch["symbol"]: {n: tuple(v) if isinstance(v, list) else v for n, v in dispatch["decisions"].items()}
            for dispatch in summary.get("dispatches", ())
            if dispatch["symbol"]
        }
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(f"summary.json is damaged ({error!r}); restore it, or remove it") from error
