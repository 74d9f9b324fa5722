"""A tuned folder written by a replay: with what follows from decisions that were edited by hand."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from mlir_sched import __version__
from mlir_sched.errors import UserError
from mlir_sched.library.library import program_decisions, provenance_of
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.script.reading import parse_each_trace
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.folder import TunedFolder
from mlir_sched.tuned_folder.installation import EmittedFiles, install
from mlir_sched.tuned_folder.lock import open_folder
from mlir_sched.tuned_folder.names import REPORT
from mlir_sched.tuned_folder.result import SUMMARY_VERSION, DispatchResult, Loading, ProgramResult, TuneResult

_KEPT = ("model", "target", "threads", "parameters")
REPLAYED: Mapping[type, tuple[str, ...]] = {
    TuneResult: ("summary_version", *_KEPT, "emission", "flags", "versions", "program", "dispatches"),
    ProgramResult: ("device", "gained", "untuned", "tuned", "verdict", "decisions", "loading"),
    DispatchResult: ("name", "symbol", "decisions", "tuned"),
}
"""What of a summary a replayed folder has, in this order; the fields that the replay does not change may be missing."""


def write_replayed(
    path: Path,
    folder: TunedFolder,
    library: str,
    target: Target,
    claim: Claim,
    program: Mapping[str, Timing],
    scripts: Mapping[str, Timing],
    loading: Loading | None = None,
) -> None:
    """Write a folder that was replayed with the right numbers.

    Its ``summary.json`` has only what describes the result, and no figure of the search.

    Args:
        folder: The folder that was replayed, with the flags to write.
        library: The library to write; empty for none.
        program: Timings of the program, ``untuned`` and ``tuned``.
        scripts: Timings of the scripts that the program uses, by symbol.
        loading: What loading the program takes; None where that is not known.

    Raises:
        UserError: The folder cannot be written, or something in it would be lost.
    """
    own, before = EmittedFiles(library, folder.flags), folder.summary.get("program", {})
    decisions = {decision.name: decision.value for decision in (program_decisions(library) if library else ())}
    summary = _fields(
        TuneResult,
        summary_version=SUMMARY_VERSION,
        **{name: folder.summary[name] for name in _KEPT if name in folder.summary},
        emission=own.emission,
        flags=own.flags,
        versions={"mlir-sched": __version__, "iree-compiler": target.compiler},
        program=_fields(
            ProgramResult,
            **{name: before[name] for name in ("device", "gained", "repair") if name in before},
            **{name: asdict(timing) for name, timing in program.items()},
            verdict=Verdict.RIGHT,
            decisions=decisions or before.get("decisions", {}),
            loading=None if loading is None else asdict(loading),
        ),
        dispatches=_dispatches(library, scripts),
    )
    with open_folder(path, claim) as place:
        install(place, claim, own, json.dumps(summary, indent=2) + "\n")


def require_output(path: Path, replayed: Path, claim: Claim) -> None:
    """Refuse to write a replayed folder where a result of a search would lose its report and its figures.

    Raises:
        UserError: The folder is the one that is replayed, holds the result of a search, or has files that are not
            known to be ours.
    """
    if path.exists() and path.samefile(replayed):
        raise UserError(f"{path} is the folder that is replayed, which stays as it is; choose another folder with -o")
    claim.require(path)
    if os.path.lexists(path / REPORT):
        raise UserError(f"{path} holds the result of a search with its report; choose another folder with -o")


def _dispatches(library: str, scripts: Mapping[str, Timing]) -> list[dict[str, Any]]:
    """Return an entry per sequence of a library; one that was edited by hand beyond its decisions has none of them."""
    if not library:
        return []
    traces, provenance = parse_each_trace(library), provenance_of(library)
    return [
        _fields(
            DispatchResult,
            name=provenance[symbol].get("dispatch", ""),
            symbol=symbol,
            decisions=found.values if isinstance(found, Trace) else {},
            tuned=asdict(scripts[symbol]) if symbol in scripts else None,
        )
        for symbol, found in traces.items()
    ]


def _fields(of: type, **known: Any) -> dict[str, Any]:
    """Return the fields of a part of the summary that are known, in their order."""
    return {name: known[name] for name in REPLAYED[of] if name in known}
