"""What matchers compare of ops, as plain data."""

from __future__ import annotations

from typing import Any

from mlir_sched.compiler.operations import captured, producer
from mlir_sched.program.rewrites.replacement import attributes_of
from mlir_sched.program.rewrites.site_rewrite import OpSite


def seen(op: Any) -> tuple[Any, ...]:
    """Return what a matcher compares of an op, or less than that; matched ops have equal data.

    In a body that uses constants from outside, a matcher sees these, but no positions of arguments
    (``library/matcher.py``).
    """
    name, attributes, body, *types = OpSite(op).kind
    return name, attributes, _yielded(op) if captured(op) else body, *types


def kind(op: Any) -> tuple[Any, ...]:
    """Return a key, equal for ops that compute the same of their operands, and that a matcher does not tell apart."""
    return *OpSite(op).kind, _yielded(op) if captured(op) else ()


def _yielded(op: Any) -> tuple[Any, ...]:
    """Return what makes the values that the body of an op yields."""
    *inner, end = [one.operation for one in op.regions[0].blocks[0]]

    def made(value: Any) -> tuple[Any, ...]:
        by = producer(value)
        if by is None or (by not in inner and by.name != "arith.constant"):
            return ()
        return by.name, attributes_of(by), *map(made, by.operands)

    return tuple(map(made, end.operands))
