"""The text of ``mlir-sched inspect``: the sequences of a folder, library or script, or the contents of a store."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from mlir_sched.database import RecordStore
from mlir_sched.database.engine import SQLITE_MAGIC
from mlir_sched.database.record import Record, StoredTask
from mlir_sched.errors import IllegalTraceError, ScriptError
from mlir_sched.evaluation.task_records import UNTUNED_KEY
from mlir_sched.library.library import program_decisions, provenance_of, scripts_of
from mlir_sched.program.program_space import PROGRAM
from mlir_sched.sampling import Distribution
from mlir_sched.trace import Decision, Trace
from mlir_sched.transform_scripts.script.reading import parse_each_trace
from mlir_sched.tuned_folder.folder import TunedFolder, read_text, read_tuned_folder


@dataclass(frozen=True)
class SequenceView:
    """One sequence as ``inspect`` shows it.

    Attributes:
        symbol: Its name in the library.
        trace: Its decisions; None when they cannot be read.
        problem: Why the decisions cannot be read; empty when they can.
        provenance: What the library says about the sequence's origin.
    """

    symbol: str
    trace: Trace | None
    problem: str
    provenance: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the view as JSON data."""
        return {
            "symbol": self.symbol,
            "trace": self.trace.to_json() if self.trace else None,
            "problem": self.problem,
            "provenance": dict(self.provenance),
        }


@dataclass(frozen=True)
class LibraryView:
    """A library or script, with its tuned folder when a folder was inspected.

    Attributes:
        path: Where it is.
        text: The library, or the script.
        program: The decisions about the whole program; none where the library states none.
        problem: Why these decisions cannot be read; empty when they can.
        by_hand: Names of the scripts that mlir-sched did not write, and of whose decisions it knows nothing.
    """

    path: str
    text: str
    sequences: tuple[SequenceView, ...]
    folder: TunedFolder | None = None
    program: tuple[Decision, ...] = ()
    problem: str = ""
    by_hand: tuple[str, ...] = ()

    def to_json(self, *, script: bool) -> dict[str, Any]:
        """Return the view as JSON data."""
        data: dict[str, Any] = {"kind": "library", "path": self.path}
        if self.folder is not None:
            flags = {"flags": list(self.folder.flags), "problem": self.folder.problem}
            data = {"kind": "tuned folder", "path": self.path} | flags | {"summary": dict(self.folder.summary)}
        data["program"] = Trace(PROGRAM, self.program).to_json() if self.program else None
        data["program_problem"] = self.problem
        data["sequences"] = [sequence.to_json() for sequence in self.sequences]
        data["by_hand"] = list(self.by_hand)
        return data | ({"script": self.text} if script else {})


@dataclass(frozen=True)
class StoredResult:
    """What a store knows of one task in one context.

    Attributes:
        context: What its timings depend on beside the task.
        records: Number of records of scripts.
        failures: How many of them failed, by class.
        not_checked: How many of them have a time, but were not checked.
        untuned: The record of the untuned code.
        best: The record of the fastest script that is right.
    """

    task: StoredTask
    context: str
    records: int
    failures: Mapping[str, int]
    not_checked: int
    untuned: Record | None
    best: Record | None

    def to_json(self, *, script: bool) -> dict[str, Any]:
        """Return the result as JSON data."""
        untuned, best = (record.to_json() if record else None for record in (self.untuned, self.best))
        if best is not None and not script:
            del best["script"]
        return {
            "task": {"key": self.task.key, "name": self.task.name, "description": self.task.description},
            "compiler": self.task.compiler,
            "flags": list(self.task.flags),
            "target": self.task.target_description,
            "context": self.context,
            "records": self.records,
            "failures": dict(self.failures),
            "not_checked": self.not_checked,
            "untuned": untuned["outcome"] if untuned else None,
            "best": best,
        }


@dataclass(frozen=True)
class StoreView:
    """A record store."""

    path: str
    tasks: int
    results: tuple[StoredResult, ...]

    @property
    def records(self) -> int:
        """Number of records of scripts."""
        return sum(result.records for result in self.results)

    def to_json(self, *, script: bool) -> dict[str, Any]:
        """Return the view as JSON data."""
        results = [result.to_json(script=script) for result in self.results]
        return {"kind": "store", "path": self.path, "tasks": self.tasks, "records": self.records, "results": results}


View: TypeAlias = LibraryView | StoreView


def inspect_path(path: str) -> View:
    """Return a view of a tuned folder, a library or script, or a record store (file or URL).

    Raises:
        UserError: The path is none of these, or cannot be read.
        ScriptError: The text is not MLIR, or holds no sequence of mlir-sched.
    """
    file = Path(path)
    if "://" in path or _is_database(file):
        return _view_store(path)
    if file.is_dir() or not file.exists():
        folder = read_tuned_folder(file)
        return _view_library(path, folder.library, folder)
    view = _view_library(path, read_text(file), None)
    if not view.sequences and not view.program and not view.by_hand:
        raise ScriptError(f"{path}: it holds no sequence of mlir-sched")
    return view


def describe_distribution(distribution: Distribution) -> str:
    """Return a distribution for people: ``perfect_tile: extent 64, levels 2``."""
    data = distribution.to_json()
    kind = data.pop("kind")
    shown = (f"{name} {'/'.join(map(str, v)) if isinstance(v, list) else v}" for name, v in data.items())
    return f"{kind}: {', '.join(shown)}"


def _is_database(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def _view_library(path: str, text: str, folder: TunedFolder | None) -> LibraryView:
    sequences = _sequences(path, text)
    by_hand = set(scripts_of(text) if text else ()) - {sequence.symbol for sequence in sequences}
    view = LibraryView(path, text, sequences, folder, by_hand=tuple(sorted(by_hand)))
    try:
        return replace(view, program=program_decisions(text) if text else ())
    except (ScriptError, IllegalTraceError) as error:
        return replace(view, problem=str(error))


def _sequences(path: str, text: str) -> tuple[SequenceView, ...]:
    if not text:
        return ()
    try:
        traces, provenance = parse_each_trace(text), provenance_of(text)
    except ScriptError as error:
        raise ScriptError(f"{path}: {error}") from error
    return tuple(
        SequenceView(
            symbol,
            found if isinstance(found, Trace) else None,
            "" if isinstance(found, Trace) else str(found),
            provenance[symbol],
        )
        for symbol, found in traces.items()
    )


def _view_store(path: str) -> StoreView:
    with RecordStore.open(path, read_only=True) as store:
        tasks = store.tasks()
        results = [_result(store, task, context) for task in tasks for context in store.contexts(task.key)]
        return StoreView(path, len(tasks), tuple(results))


def _result(store: RecordStore, task: StoredTask, context: str) -> StoredResult:
    counts = store.failures(task.key, context)
    failures = {kind: count for kind, count in counts.items() if kind}
    not_checked = store.not_checked(task.key, context)
    untuned, best = store.find(task.key, context, UNTUNED_KEY), store.best(task.key, context)
    return StoredResult(task, context, sum(counts.values()), failures, not_checked, untuned, best)
