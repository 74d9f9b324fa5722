"""``mlir-sched tune --check-only``: runs a search without a device and shows what it found."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from mlir_sched.check_only import tune_without_device
from mlir_sched.cli.exit import DONE, INTERRUPTED, OUR_FAULT, Output
from mlir_sched.cli.progress import progress_view
from mlir_sched.cli.tune import MOST_ROWS, failure_lines, left_out_lines
from mlir_sched.space.user_modules import load_modules
from mlir_sched.text import console, duration, seconds, table
from mlir_sched.tuned_folder.estimated_result import EstimatedDispatch, EstimatedResult
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.search_method import SearchMethod


def run_check_only(
    model: Path,
    folder: Path,
    options: TuneOptions,
    method: SearchMethod,
    store: str | None,
    modules: Sequence[str],
    parameters: Sequence[str],
    output: Output,
) -> int:
    """Search without a device and print the result; return the exit code."""
    loaded = load_modules(modules)
    with progress_view() as progress:
        result = tune_without_device(
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
    if output.as_json:
        output.document(result.to_json())
    else:
        print_estimates(result)
    if result.interrupted:
        return INTERRUPTED
    return OUR_FAULT if result.stopped else DONE


def print_estimates(result: EstimatedResult) -> None:
    """Print the table per dispatch and the lines below it."""
    out = console()
    ordered = sorted(result.dispatches, key=lambda dispatch: -(dispatch.weight * (dispatch.untuned_s or 0.0)))
    out.print(estimates_table(ordered[:MOST_ROWS]))
    for line in estimates_lines(result):
        out.print(line, soft_wrap=True)


def estimates_table(dispatches: Sequence[EstimatedDispatch]) -> Table:
    """Return the table with one row per dispatch."""
    made = table("dispatch", ">calls", ">untuned, est.", ">with script, est.", ">ratio, est.", "script, or why none")
    for dispatch in dispatches:
        made.add_row(
            dispatch.name,
            str(dispatch.weight),
            _seconds(dispatch.untuned_s),
            _seconds(dispatch.tuned_s),
            "-" if dispatch.ratio is None else f"{dispatch.ratio:.2f}",
            dispatch.what_changed,
        )
    return made


def estimates_lines(result: EstimatedResult) -> list[str]:
    """Return the lines below the table."""
    early = "interrupted" if result.interrupted else "stopped" if result.stopped else ""
    what = f"{early}; best so far" if early else "done"
    scripts = sum(dispatch.tuned_s is not None for dispatch in result.dispatches)
    more = len(result.dispatches) - MOST_ROWS
    return [
        *([f"and {more} dispatches; summary.json has all"] if more > 0 else []),
        f"{what}: {result.trials} candidates in {duration(result.seconds)}",
        *([f"the search stopped: {result.stopped}"] if result.stopped else []),
        *failure_lines(result.failures),
        f"whole program, est.: untuned {seconds(result.untuned_s)}, tuned {seconds(result.tuned_s)}, "
        f"{result.untuned_s / result.tuned_s:.2f}; flags: {result.variant}",
        *left_out_lines(result.left_out),
        *(f"note: {note}" for note in result.notes),
        f"NOT MEASURED: nothing was run. Times are estimates for {result.processor}; numbers were not checked",
        f"written: {result.output}; dispatches with a script, which is proven applied: {scripts}",
        f"use it: iree-compile {shlex.quote(f'@{result.output}/flags.txt')} {shlex.quote(result.model)} -o model.vmfb",
    ]


def _seconds(value: float | None) -> str:
    return "-" if value is None else seconds(value)
