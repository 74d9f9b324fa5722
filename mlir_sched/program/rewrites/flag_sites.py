"""Places of a program that a compiler flag changes, and the rewrite that keeps some of them as without the flag."""

from collections.abc import Mapping

from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.program.rewrites.padding.separate import SeparatePadding

FLAG_SITES: Mapping[str, type[SeparatePadding]] = {FUSED_PADDING: SeparatePadding}
"""By the flag. Such a rewrite sees the program that all other rewrites leave, and takes labels of its sites; without
labels, its sites are all places that the flag changes."""
