"""The events of a running search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from mlir_sched.tuning.phases import Phase


@dataclass(frozen=True)
class ProgramState:
    """How far the search of one program is.

    Attributes:
        name: Name of the search: that of the variant that it began with.
        tried: Candidates tried.
        best: Speed-up of the best candidate so far by dispatch name, at least 1. A dispatch is missing until its first
            round has ended, unless an earlier run found a candidate that is faster than its untuned code.
        failures: Failed candidates so far by class.
    """

    name: str
    tried: int
    best: Mapping[str, float]
    failures: Mapping[str, int]


class SearchEvents(Protocol):
    """The listener that is told what happens in a search; an exception that it raises ends the search."""

    def on_phase(self, phase: Phase, state: ProgramState, dispatch: str = "") -> None:
        """Hear in which phase the run is now, how far a search is, and which dispatch it works on; called often."""

    def on_internal_error(self, text: str) -> None:
        """Hear the traceback of an internal error that cost a candidate or a dispatch; it may come more than once."""
