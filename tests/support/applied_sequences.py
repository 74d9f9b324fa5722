"""Counts what the public route applies of a library."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mlir_sched.compiler import Shown, compile_showing


def applied_sequences(model: str | Path, flags: tuple[str, ...], library: Path | None) -> dict[str, int]:
    """Return the number of dispatches by the sequence that they carry the mark of."""
    found = compile_showing(model, flags, library, (Shown.SCRIPTS,)).scripts
    return dict(Counter(dispatch.sequence for dispatch in found))
