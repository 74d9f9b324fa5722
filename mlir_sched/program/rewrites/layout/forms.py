"""How a script says that an op has a form: its attributes, and how its elements are computed, whatever the sizes are.

A script compares the op that makes an element, and all that this is computed from, down to the leaves: arguments of
the body, indices of loops, and tensors that the body reads elements of. Constants may lie outside of the body. Which
argument is which it does not see: ``x - y`` has the form of ``y - x``.
"""

from collections.abc import Hashable
from typing import Any

from mlir_sched.compiler.operations import captured, constant_of, named_attributes, walk
from mlir_sched.library.matcher import append_comparison_of_body
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.linalg_ops import GENERIC, is_static
from mlir_sched.program.rewrites.replacement import MEMOIZED, only_op, ops_within, require_number
from mlir_sched.program.rewrites.site_rewrite import OpSite

_DERIVED = ("operandSegmentSizes", MEMOIZED)
"""Attributes that follow from others."""
_WITH_BODY = (GENERIC, PAD)
"""Ops whose bodies do not follow from their names."""


def form_of(op: Any) -> tuple[Hashable, ...]:
    """Return what :func:`match_form` compares of an op, and which values its body uses where."""
    outside = captured(op)
    constants = (found for found in map(constant_of, outside) if found is not None)
    types = (value.type for inner in walk(op) for value in (*inner.operands, *inner.results))
    return *OpSite(op).form, *types, *map(outside.index, outside), *constants


def match_form(handle: Any, op: Any) -> None:
    """Emit the comparison of an op's form."""
    attributes = {each.name: each.attr for each in named_attributes(op) if each.name not in _DERIVED}
    found = only_op(handle, op.name, attributes)
    if op.name in _WITH_BODY:
        require_number(ops_within(found), 1 + len([*walk(op)]))
        append_comparison_of_body(found, op, is_static)
