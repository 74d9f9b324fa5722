"""``mlir-sched inspect``: prints sequences with their decisions, or the contents of a record store."""

from collections.abc import Sequence

from rich.table import Table

from mlir_sched.cli.exit import DONE, Output
from mlir_sched.errors import UserError
from mlir_sched.replaying.inspection import (
    LibraryView,
    SequenceView,
    StoredResult,
    StoreView,
    describe_distribution,
    inspect_path,
)
from mlir_sched.replaying.user_store_view import UserStoreView, view_user_store
from mlir_sched.text import (
    console,
    counted,
    decisions,
    failures,
    mebibytes,
    median,
    say,
    speedup,
    table,
    threads,
    value,
)
from mlir_sched.trace import Decision
from mlir_sched.tuned_folder.transferred import TransferResult


def run_inspect(path: str | None, user_store: bool, script: bool, output: Output) -> int:
    """Print what is at a path, or in the user's store; return the exit code."""
    if user_store:
        return _inspect_user_store(path, script, output)
    if path is None:
        raise UserError("give the path of a folder, library, script or record store, or --user-store")
    view = inspect_path(path)
    if output.as_json:
        output.document(view.to_json(script=script))
    elif script:
        print(_script_of(view), end="")
    elif isinstance(view, StoreView):
        _print_store(view)
    else:
        _print_library(view)
    return DONE


def _inspect_user_store(path: str | None, script: bool, output: Output) -> int:
    if path is not None or script:
        raise UserError("--user-store takes neither a path nor --script; for these, give its path alone")
    view = view_user_store()
    output.show(view.to_json, lambda: _print_user_store(view))
    return DONE


def _script_of(view: LibraryView | StoreView) -> str:
    if isinstance(view, LibraryView):
        return view.text
    best = [(result.task.name, result.best) for result in view.results if result.best is not None]
    return "// -----\n".join(f"// The best script of {name}\n{record.script}" for name, record in best)


def _print_library(view: LibraryView) -> None:
    if view.folder is not None:
        say(f"flags: {' '.join(view.folder.flags)}")
        if view.folder.problem:
            say(f"problem: {view.folder.problem}")
        say(*_transfer_lines(view.folder.transfer))
    if view.program:
        console().print(_decision_table("the whole program", view.program))
    if view.problem:
        say(f"problem: {view.problem}")
    if view.by_hand:
        say(f"written by hand, without decisions that mlir-sched knows: {', '.join(view.by_hand)}")
    elif not view.sequences:
        say("no dispatch is tuned here: the flags are all there is")
    for sequence in view.sequences:
        _print_sequence(sequence)


def _transfer_lines(transfer: TransferResult | None) -> list[str]:
    """Return the lines on what a search began from, one per source behind the first."""
    if transfer is None:
        return []
    sources = (
        f"  {each.place}: {each.name} ({each.description}) on {each.processor}, {threads(each.threads)}, "
        f"{each.candidates} candidates"
        for each in transfer.sources
    )
    return [transfer.words, *sources]


def _print_sequence(sequence: SequenceView) -> None:
    sketch = sequence.trace.sketch if sequence.trace else sequence.provenance.get("sketch", "")
    decided = sequence.trace.decisions if sequence.trace else ()
    console().print(_decision_table(f"@{sequence.symbol}: {sketch}", decided))
    if sequence.problem:
        say(f"problem: {sequence.problem}")
    say(*(f"  {name}: {text}" for name, text in sequence.provenance.items() if name != "sketch"))


def _decision_table(title: str, decisions: Sequence[Decision]) -> Table:
    made = table("decision", "value", "drawn from", ">choices", title=title)
    for decision in decisions:
        drawn_from = describe_distribution(decision.distribution)
        made.add_row(decision.name, value(decision.value), drawn_from, str(len(decision.distribution.support())))
    return made


def _print_store(view: StoreView) -> None:
    counts, times = (">records", "failed", ">not checked"), (">untuned", ">best", "speed-up (95 %)")
    made = table("task", "context", *counts, *times, "best decisions")
    for result in view.results:
        made.add_row(*_store_row(result))
    console().print(made)
    targets = dict.fromkeys(result.task.target_description for result in view.results)
    known = f"{counted(view.tasks, 'task')}, {counted(view.records, 'record')} of scripts"
    say(*(f"target: {target}" for target in targets), known)


def _print_user_store(view: UserStoreView) -> None:
    for title, parts in (("ops", view.ops), ("machine", view.machines)):
        made = table(title, ">tasks", ">records")
        for part in parts:
            made.add_row(part.name, str(part.tasks), str(part.records))
        console().print(made)
    say(f"{view.path}: {mebibytes(view.bytes)}, {counted(view.tasks, 'task')}, {counted(view.records, 'record')}")


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
