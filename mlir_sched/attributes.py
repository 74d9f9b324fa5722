"""Names of what mlir-sched leaves in MLIR: symbols of scripts, and attributes of payloads and libraries."""

from __future__ import annotations

SEQUENCE = "strategy"
"""Symbol of the sequence that a stand-alone script holds. Its argument is the dispatch's ``func.func``."""
APPLIED = "mlir_sched.applied"
"""Annotation that the last op of a sequence puts on the function: the proof that the sequence ran to its end."""
MARK = "mlir_sched.op"
"""Beginning of the annotation by which a sequence finds an op again; the op's index follows. Vectorized, it is gone."""
SEQUENCE_CHOSEN = "mlir_sched.chosen"
"""Annotation of a function that a sequence of a library matches, before any sequence runs."""
REWRITTEN = "mlir_sched.rewritten"
"""Attribute with the name of a rewrite, on one op of every piece of program that the rewrite put in place."""
EMISSION = "mlir_sched.emission"
"""Attribute of a library with the name of its emission, which ``summary.json`` repeats."""
