"""Flags of IREE that matter to a program only before its dispatches are formed."""

from __future__ import annotations

from collections.abc import Sequence

GROWTH = "--iree-opt-const-expr-max-size-increase-threshold"
"""How many bytes a constant may grow when the compiler evaluates what is computed from it (HoistIntoGlobals.cpp)."""
FUSED_PADDING = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops"
"""Padding becomes part of the dispatch that reads the padded tensor. Without this flag a dispatch of its own copies the
tensor, or its producer writes into a larger buffer whose border is filled before (DispatchCreation/Passes.cpp)."""


def task_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the flags of a program that matter to its tasks, too: equal dispatches of programs share their records."""
    return tuple(flag for flag in flags if flag.partition("=")[0] not in (GROWTH, FUSED_PADDING))
