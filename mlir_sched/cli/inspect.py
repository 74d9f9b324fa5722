"""``mlir-sched inspect``: prints sequences with their decisions, or the contents of a record store."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from mlir_sched.cli.exit import DONE, Output
from mlir_sched.replaying.inspection import (
    LibraryView,
    SequenceView,
    StoredResult,
    StoreView,
    describe_distribution,
    inspect_path,
)
from mlir_sched.text import console, decisions, failures, median, speedup, table, value
from mlir_sched.trace import Decision


def run_inspect(path: str, script: bool, output: Output) -> int:
    """Print what is at a path; return the exit code."""
    view = inspect_path(path)
    if output.as_json:
        output.document(view.to_json(script=script))
    elif script:
        print(_script_of(view), end="")
    elif isinstance(view, StoreView):
        _print_store(view, console())
    else:
        _print_library(view, console())
    return DONE


def _script_of(view: LibraryView | StoreView) -> str:
    if isinstance(view, LibraryView):
        return view.text
    best = [(result.task.name, result.best) for result in view.results if result.best is not None]
    return "// -----\n".join(f"// The best script of {name}\n{record.script}" for name, record in best)


def _print_library(view: LibraryView, out: Console) -> None:
    if view.folder is not None:
        _line(out, f"flags: {' '.join(view.folder.flags)}")
        if view.folder.problem:
            _line(out, f"problem: {view.folder.problem}")
    if view.program:
        out.print(_decision_table("the whole program", view.program))
    if view.problem:
        _line(out, f"problem: {view.problem}")
    if view.by_hand:
        _line(out, f"written by hand, without decisions that mlir-sched knows: {', '.join(view.by_hand)}")
    elif not view.sequences:
        _line(out, "no dispatch is tuned here: the flags are all there is")
    for sequence in view.sequences:
        _print_sequence(sequence, out)


def _print_sequence(sequence: SequenceView, out: Console) -> None:
    sketch = sequence.trace.sketch if sequence.trace else sequence.provenance.get("sketch", "")
    out.print(_decision_table(f"@{sequence.symbol}: {sketch}", sequence.trace.decisions if sequence.trace else ()))
    if sequence.problem:
        _line(out, f"problem: {sequence.problem}")
    for name, text in sequence.provenance.items():
        if name != "sketch":
            _line(out, f"  {name}: {text}")


def _decision_table(title: str, decisions: Sequence[Decision]) -> Table:
    made = table("decision", "value", "drawn from", ">choices", title=title)
    for decision in decisions:
        drawn_from = describe_distribution(decision.distribution)
        made.add_row(decision.name, value(decision.value), drawn_from, str(len(decision.distribution.support())))
    return made


def _print_store(view: StoreView, out: Console) -> None:
    made = table(
        "task",
        "context",
        ">records",
        "failed",
        ">not checked",
        ">untuned",
        ">best",
        "speed-up (95 %)",
        "best decisions",
    )
    for result in view.results:
        made.add_row(*_store_row(result))
    out.print(made)
    for target in dict.fromkeys(result.task.target_description for result in view.results):
        _line(out, f"target: {target}")
    _line(out, f"{view.tasks} tasks, {view.records} records of scripts")


def _store_row(result: StoredResult) -> tuple[str, ...]:
    untuned = result.untuned.outcome.timing if result.untuned else None
    best = result.best.outcome.timing if result.best else None
    trace = result.best.trace if result.best else None
    return (
        f"{result.task.name}\n{result.task.description}",
        result.context,
        str(result.records),
        failures(result.failures),
        str(result.not_checked),
        median(untuned),
        median(best),
        speedup(best),
        f"{trace.sketch}: {decisions(trace.values)}" if trace else "",
    )


def _line(out: Console, text: str) -> None:
    out.print(text, soft_wrap=True)
