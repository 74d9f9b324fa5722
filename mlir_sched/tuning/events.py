"""The events of a running search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class ProgramState:
    """How far the search of one program is.

    Attributes:
        name: Name of its variant.
        tried: Candidates tried.
        best: Speed-up of the best candidate so far by dispatch name, at least 1.
        failures: Failed candidates so far by class.
    """

    name: str
    tried: int
    best: Mapping[str, float]
    failures: Mapping[str, int]


class SearchEvents(Protocol):
    """Is told what happens in a search; whatever it raises ends the search."""

    def on_stage(self, stage: str, state: ProgramState) -> None:
        """Hear what a search does now, for a person, and how far it is; called often."""

    def on_internal_error(self, text: str) -> None:
        """Hear the traceback of a mistake of ours that cost a candidate or a dispatch; the same one may come twice."""
