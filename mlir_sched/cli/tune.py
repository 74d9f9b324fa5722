"""``mlir-sched tune``: runs the search and shows what it found."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.table import Table

from mlir_sched.cli.exit import DONE, INTERRUPTED, OUR_FAULT, Output
from mlir_sched.cli.progress import progress_view
from mlir_sched.errors import FailureClass
from mlir_sched.pipeline import tune
from mlir_sched.space.user_modules import load_modules
from mlir_sched.targets.target import LOCAL_SYNC, in_calling_thread
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.text import console, durations, failures, median, numbers, phases, say, seconds, speedup, table, threads
from mlir_sched.tuned_folder.result import FAR, DispatchResult, Loading, TuneResult, Weights
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.search_method import SearchMethod

UNLIKE = 2.0
"""Factor between a dispatch's time alone and its time in the program beyond which the user is told."""
CALL_S = 20e-6
"""Difference between the two times, in seconds, that is taken for noise: a call of IREE's runtime takes 2 us, a call of
its task system up to 20 us."""
MOST_ROWS = 15
"""Most rows of the table of dispatches; a line counts the rest."""
SHOWN = 3
"""Names that a line lists before it counts the rest."""


def run_tune(
    model: Path,
    folder: Path,
    options: TuneOptions,
    method: SearchMethod,
    store: str | None,
    modules: Sequence[str],
    parameters: Sequence[str],
    output: Output,
) -> int:
    """Tune and print the result; return the exit code."""
    loaded = load_modules(modules)
    with progress_view() as progress:
        result = tune(
            model,
            folder,
            options=options,
            store=store,
            modules=loaded,
            parameters=parameters,
            strategy=method.strategy,
            cost_model=method.cost_model,
            scheduler=method.scheduler,
            progress=progress,
        )
    output.show(result.to_json, lambda: print_result(result, threads_chosen=options.threads is not None))
    if result.interrupted:
        return INTERRUPTED
    return DONE if result.is_whole else OUR_FAULT


def print_result(result: TuneResult, *, threads_chosen: bool) -> None:
    """Print the table per dispatch and the lines about the program."""
    shown, rest = rows_that_matter(result.dispatches)
    console().print(dispatch_table(shown, measured=result.measured))
    below = rest_lines(shown, rest, measured=result.measured)
    say(*below, *summary_lines(result, threads_chosen=threads_chosen))


def rows_that_matter(dispatches: Sequence[DispatchResult]) -> tuple[Sequence[DispatchResult], Sequence[DispatchResult]]:
    """Return the dispatches for the table, and the rest: all in the model's order, or those that take most time now."""
    if len(dispatches) <= MOST_ROWS:
        return dispatches, ()
    ordered = sorted(dispatches, key=lambda dispatch: -dispatch.seconds_per_run)
    return ordered[:MOST_ROWS], ordered[MOST_ROWS:]


def rest_lines(shown: Sequence[DispatchResult], rest: Sequence[DispatchResult], *, measured: bool = True) -> list[str]:
    """Return the line that counts the dispatches below the table; their times are measured, or of a model."""
    if not rest:
        return []
    rest_s = sum(dispatch.seconds_per_run for dispatch in rest)
    all_s = rest_s + sum(dispatch.seconds_per_run for dispatch in shown)
    tuned = sum(dispatch.tuned is not None for dispatch in rest)
    by_model = "" if measured else "by the model "
    return [
        f"and {len(rest)} dispatches that take {by_model}{seconds(rest_s)} of {seconds(all_s)} per run, {tuned} of "
        "them with a script; report.html shows all"
    ]


def dispatch_table(dispatches: Sequence[DispatchResult], *, measured: bool = True) -> Table:
    """Return the table with one row per dispatch.

    Args:
        measured: Whether times are measured; estimates are called estimates, and there is one for all untuned code.
    """
    figures = (">share", ">untuned", ">tuned", "speed-up (95 %)" if measured else "speed-up")
    made = table(
        "dispatch", ">calls", *(name if measured else f"{name}, est." for name in figures), "what changed, or why not"
    )
    for dispatch in dispatches:
        known_s = None if measured else dispatch.in_program_s
        made.add_row(
            dispatch.name,
            str(dispatch.weight),
            "-" if dispatch.share is None else f"{dispatch.share:.1%}",
            seconds(known_s) if dispatch.untuned is None and known_s else median(dispatch.untuned),
            median(dispatch.tuned),
            speedup(dispatch.tuned),
            dispatch.what_changed,
        )
    return made


def as_in_program(dispatch: DispatchResult) -> bool:
    """Say whether a dispatch takes about as long alone as in the program; True when one of the times is unknown."""
    if dispatch.untuned is None or dispatch.in_program_s is None:
        return True
    alone_s, inside_s = dispatch.untuned.median_s, dispatch.in_program_s
    return abs(alone_s - inside_s) <= CALL_S or inside_s / UNLIKE <= alone_s <= UNLIKE * inside_s


def left_out_lines(left_out: Mapping[str, str]) -> list[str]:
    """Return one line per reason for which program variants, given by name, were left out."""
    names = {why: [name for name, reason in left_out.items() if reason == why] for why in left_out.values()}
    return [f"program variants left out ({', '.join(left)}): {why}" for why, left in names.items()]


def summary_lines(result: TuneResult, *, threads_chosen: bool = True) -> list[str]:
    """Return the lines below the table; the number of threads is explained where the user did not choose the number."""
    program = result.program
    early = "interrupted" if result.interrupted else "stopped" if result.stopped else ""
    what = f"{early}; best so far" if early else "done"
    took = durations(result.seconds, result.run_seconds)
    how, est = ("measured", "") if result.measured else ("estimated", ", est.,")
    lines = [f"{what}: {result.trials} trials ({result.evaluated} {how} now) in {took}"]
    lines += [f"the search stopped: {result.stopped}"] if result.stopped else []
    lines += [f"the search ended early: {result.ended_early}"] if result.ended_early else []
    lines.append(f"where the time went: {phases(result.phases)}")
    lines += failure_lines(result.failures)
    place = _place(result, threads_chosen=threads_chosen)
    lines.append(
        f"whole program{est} on {place}: untuned {seconds(program.untuned.median_s)}, "
        f"tuned {seconds(program.tuned.median_s)}, {speedup(program.tuned)}; flags: {program.variant}; "
        f"{numbers(program.verdict, program.inside)}"
    )
    lines += left_out_lines(result.left_out)
    lines += [f"@{name} is neither run nor timed: {why}" for name, why in result.not_run.items()]
    if result.coverage:
        lines.append(result.coverage)
    parts = (result.one_shot, result.transfer, result.predicted)
    lines += [part.words for part in parts if part is not None]
    lines += [f"note: {note}" for note in result.notes]
    elsewhere = [d.name for d in result.dispatches if not as_in_program(d)]
    if elsewhere:
        more = f" and {len(elsewhere) - SHOWN} more" if len(elsewhere) > SHOWN else ""
        lines.append(
            f"dispatches that take over {UNLIKE:g} times, or less than 1 / {UNLIKE:g} times, as long alone as in the "
            f"program (rely on the whole program's time): {', '.join(elsewhere[:SHOWN])}{more}"
        )
    if result.threads > 1 and in_calling_thread(program.device):
        than = f"{result.threads}" if threads_chosen else f"{result.threads} (all cores)"
        lines.append(f"run it with --device={LOCAL_SYNC}: one thread is faster than {than}; no worker has to wake up")
    lines += loading_lines(program.loading, encoding_command(result.model, result.output, result.parameters))
    lines += weights_lines(program.weights)
    if not program.gained:
        model = "" if result.measured else "by the model, "
        lines.append(f"no gain: {model}what was emitted is as fast as {program.reference}")
    if result.not_measured:
        lines.append(f"NOT MEASURED: {result.not_measured}")
    if result.output is not None:
        lines.append(f"written: {result.output} (report.html shows the run)")
        flags, model = shlex.quote(f"@{result.output}/flags.txt"), shlex.quote(result.model)
        lines.append(f"use it: iree-compile {flags} {model} -o model.vmfb")
    return lines


def loading_lines(loading: Loading | None, encode: str) -> list[str]:
    """Return the lines on what loading takes where that is far more than for the untuned program.

    Args:
        loading: What loading takes.
        encode: The command that computes weights ahead of that; empty where none does.
    """
    if loading is None or not loading.costs_more:
        return []
    return [loading.words, *([f"to compute weights ahead of that: {encode}"] if encode else [])]


def encoding_command(model: str, folder: str | None, parameters: Sequence[str]) -> str:
    """Return the command that encodes the weights of a tuned program; empty for a program without files of weights."""
    if folder is None or not parameters:
        return ""
    scopes = dict.fromkeys(ParameterFile.parse(text).scope for text in parameters)
    read = [word for text in parameters for word in ("--parameters", text)]
    made = [word for scope in scopes for word in ("--encode", f"{scope}={scope or 'weights'}.encoded.irpa")]
    return shlex.join(["mlir-sched", "compile", model, "--tuned", folder, *read, *made])


def weights_lines(weights: Weights | None) -> list[str]:
    """Return the line on the weights that calls read where they are far larger than those of the untuned program."""
    if weights is None or not weights.cost_more:
        return []
    return [f"{weights.words}; a run with --max-weights {FAR:g} leaves out what needs over {FAR:g} times the memory"]


def _place(result: TuneResult, *, threads_chosen: bool) -> str:
    """Return what the emitted program is for: a number of threads, or a device."""
    if result.target != TuneOptions.target:
        return result.target
    alone = result.threads > 1 and in_calling_thread(result.program.device)
    return threads(1) if alone else threads(result.threads, chosen=threads_chosen)


def failure_lines(failed: Mapping[str, int]) -> list[str]:
    """Return the lines on failed candidates, given their number by class."""
    lines = [f"failed candidates: {failures(failed)}"] if failed else []
    if ours := failed.get(FailureClass.INTERNAL_ERROR):
        lines.append(f"{ours} of them hit a bug in mlir-sched; the record store has the tracebacks; please report it")
    return lines
