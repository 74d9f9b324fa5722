"""Counts what the public route applies of a library."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mlir_sched.compiler import tuned_dispatches


def applied_sequences(model: str | Path, flags: tuple[str, ...], library: Path | None) -> dict[str, int]:
    """Return the number of dispatches by the sequence that they carry the mark of."""
    return dict(Counter(dispatch.sequence for dispatch in tuned_dispatches(model, flags, library)))
