"""Names of what mlir-sched leaves in MLIR: symbols of scripts, and attributes of payloads and libraries."""

from __future__ import annotations

STRATEGY = "strategy"
"""Symbol of the sequence that a stand-alone script holds. Its argument is the dispatch's ``func.func``."""
APPLIED = "mlir_sched.applied"
"""Annotation that the last op of a strategy puts on the function: the proof that the strategy ran to its end."""
MARK = "mlir_sched.op"
"""Beginning of the annotation by which a strategy finds an op again; the op's index follows. Vectorized, it is gone."""
STRATEGY_CHOSEN = "mlir_sched.chosen"
"""Annotation of a function that a strategy of a library matches, before any strategy runs."""
REWRITTEN = "mlir_sched.rewritten"
"""Attribute with the name of a rewrite, on one op of every piece of program that the rewrite put in place."""
EMISSION = "mlir_sched.emission"
"""Attribute of a library with the name of its emission, which ``summary.json`` repeats."""
