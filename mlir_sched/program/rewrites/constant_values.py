"""Constant values of a program: values that the compiler, or the program when it is loaded, computes once."""

from collections.abc import Sequence
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import captured, constant_of, producer
from mlir_sched.program.rewrites.site_rewrite import Op, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

LOAD = "util.global.load"
_COMPUTED = (
    "linalg.fill",
    "linalg.generic",
    "linalg.transpose",
    "tensor.collapse_shape",
    "tensor.concat",
    "tensor.empty",
    "tensor.expand_shape",
    "tensor.extract_slice",
)
"""Ops that IREE evaluates once when all their operands are constants."""


def with_constant_weights(sites: Sequence[Op], program: WalkedProgram) -> list[Op]:
    """Return the sites whose second operands are constants.

    A matcher sees an op's kind, but not whether its operand is a constant: a kind with any operand that is not a
    constant is left out as a whole.
    """
    varying = {site.kind for site in sites if not is_constant(site.op.operands[1], program.constants)}
    return [site for site in sites if site.kind not in varying]


def is_constant(value: Any, globals_: frozenset[str]) -> bool:
    """Say whether a value is a constant, a global that is never written, or computed from such values alone."""
    op = producer(value)
    if op is None:
        return False
    if op.name == LOAD:
        return global_of(op) in globals_
    if op.name in _COMPUTED:
        read = all(is_constant(value, globals_) for value in op.operands)
        return read and all(is_constant(value, globals_) for value in captured(op))
    return bool(op.name == "arith.constant")


def constant_key(value: Any) -> tuple[Any, ...]:
    """Return a key of a constant (:func:`is_constant`), equal for constants that are computed alike."""
    op = producer(value)
    if op.name == LOAD:
        return LOAD, global_of(op)
    if op.name == "arith.constant":
        return op.name, op.attributes["value"]
    return *OpSite(op).form, value.type, *map(constant_key, (*op.operands, *captured(op)))


def global_of(load: Any) -> str:
    """Return the symbol of the global that an op loads."""
    return str(ir.FlatSymbolRefAttr(load.attributes["global"]).value)


def scalar_constant(value: Any) -> float | None:
    """Return a scalar constant; None for any other value."""
    attribute = constant_of(value)
    if attribute is None:
        return None
    kind = ir.FloatAttr if isinstance(attribute, ir.FloatAttr) else ir.IntegerAttr
    return float(kind(attribute).value)
