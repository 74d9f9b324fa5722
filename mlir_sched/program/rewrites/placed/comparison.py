"""How a script compares pieces of a program with what it was made for, before anything is replaced.

A piece is some ops that a script finds by their places. Compared are, of every op once, its attributes and its body,
how many read its results, and whether values that it reads are results of the same ops still, or what the same other
ops read. Sizes follow from the types of inputs and results, which are those of a function.

IREE 3.13 compares a body as a whole that uses no values from outside but results of ops which are compared with it
(PreprocessingExtensions.cpp, EquivalenceUtils.cpp): where these are constants, a script has an op made that reads them
and the result, and compares that. Of a body that uses tensors from outside it compares how elements are computed, from
arguments, loops, tensors and constants: here ``x - y`` is not told from ``y - x`` where both are arguments. Attributes
that only the other program has are not seen.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.operations import captured, constant_of, named_attributes, producer, walk
from mlir_sched.library.matcher import append_comparison_of_body
from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.linalg_ops import GENERIC, copied_with_constants, is_static, of_any_size
from mlir_sched.program.rewrites.placed.body import INDEX, Body
from mlir_sched.program.rewrites.placed.links import Link, Made, Operands, Read
from mlir_sched.program.rewrites.replacement import (
    MEMOIZED,
    only_op,
    ops_within,
    require_number,
    require_same,
    result_of,
    split,
)
from mlir_sched.program.rewrites.site_rewrite import OpSite
from mlir_sched.transform_scripts.script.building import append_dag, append_inlined_call

_DERIVED = ("operandSegmentSizes", MEMOIZED)
"""Attributes that follow from others."""
_WITH_BODY = (GENERIC, PAD)
"""Ops whose bodies do not follow from their names."""


def form_of(op: Any) -> tuple[Hashable, ...]:
    """Return what is compared of an op alone."""
    operands = op.operands if _is_whole(op) else ()
    return *OpSite(op).form, *(of_any_size(value.type) for value in operands)


def held(op: Any) -> list[Any]:
    """Return the constants from outside that a body which is compared as a whole uses, if any, and then the result."""
    constants = dict.fromkeys(captured(op)) if _is_whole(op) else ()
    return [*constants, op.results[0]] if constants else []


def hold(*values: Any) -> list[Any]:
    """Make an op that reads values, and return nothing."""
    ir.Operation.create("builtin.unrealized_conversion_cast", operands=values, results=[values[-1].type])
    return []


def match_op(handle: Any, op: Any, *holding: Any) -> None:
    """Emit the comparison of an op alone, whatever its sizes are.

    Args:
        handle: A handle on the op.
        op: What it has to be.
        holding: For an op with constants from outside, handles on a function that does what :func:`hold` does, and on
            the ops that make :func:`held`.
    """
    if _is_whole(op):
        _match_whole(handle, op, *holding)
        return
    attributes = {each.name: each.attr for each in named_attributes(op) if each.name not in _DERIVED}
    found = only_op(handle, op.name, attributes)
    if op.name in _WITH_BODY:
        require_number(ops_within(found), 1 + len([*walk(op)]))
        for ends, values in append_comparison_of_body(found, op, is_static):
            tensors = [read.operands[0] for read in Body(op).reads]
            for part, value in zip(split(ends, len(values)) if values else (), values, strict=True):
                loop = producer(value)
                if value in tensors:
                    require_same(part, Read(op, tensors.index(value)).handle(found))
                elif loop is not None and loop.name == INDEX:
                    at = transform.GetDefiningOp(transform.AnyOpType.get(), part).result
                    only_op(at, INDEX, {"dim": loop.attributes["dim"]})


def compare(
    ops: Iterable[Any],
    pieces: Iterable[Iterable[Link]],
    inner: Container[Any],
    handles: Mapping[Any, Any],
    holding: Mapping[Any, Sequence[Any]],
) -> None:
    """Emit the comparison of the ops of pieces.

    Args:
        ops: The ops.
        pieces: Per piece the values that its ops read which have to be what they are: results of the ops, or the same
            others within the piece.
        inner: Those of the ops whose results have to have as many readers as they have.
        handles: Handles on the ops.
        holding: Per op with constants from outside, further arguments of :func:`match_op`.
    """
    ties, alike = _ties(ops, pieces), dict[Hashable, list[Any]]()
    readers = {op: [len([*value.uses]) for value in op.results] if op in inner else [] for op in ties}
    for op, own in ties.items():
        forms = ((link.form, other.form) for link, other in own)
        alike.setdefault((*form_of(op), *readers[op], *forms), []).append(op)
    for same in alike.values():
        rows = [[handles[op], *(handles[other.op] for _, other in ties[op]), *holding.get(op, ())] for op in same]
        each = transform.ForeachOp([], [transform.merge_handles(column) for column in zip(*rows, strict=True)])
        with ir.InsertionPoint(each.body):
            (op, *_), own, (handle, *others) = same, ties[same[0]], each.bodyTargets
            for number, count in enumerate(readers[op]):
                require_number(transform.get_consumers_of_result(transform.AnyOpType.get(), handle, number), count)
            match_op(handle, op, *others[len(own) :])
            for (link, other), theirs in zip(own, others, strict=False):
                _require(link, link.handle(handle), other.handle(theirs))
            transform.YieldOp()


def _ties(ops: Iterable[Any], pieces: Iterable[Iterable[Link]]) -> Mapping[Any, list[tuple[Link, Link]]]:
    """Return what every op reads that another one has, too: as a result, or in the same piece as what it reads."""
    found = dict[Any, list[tuple[Link, Link]]]((op, []) for op in ops)
    made: dict[Any, Link] = {(result,): Made(op, place) for op in found for place, result in enumerate(op.results)}
    for links in pieces:
        read = dict[Any, Link]()
        for link in dict.fromkeys(links):
            other = made.get(link.values) or read.setdefault(link.values, link)
            if other is not link and (link, other) not in found[link.op]:
                found[link.op].append((link, other))
    return found


def _require(link: Link, first: Any, second: Any) -> None:
    """Emit a failure unless two handles are on the same values, in the same order."""
    if not isinstance(link, Operands):
        require_same(first, second)
        return
    pairs = transform.ForeachOp([], [first, second])
    with ir.InsertionPoint(pairs.body):
        require_same(*pairs.bodyTargets)
        transform.YieldOp()


def _match_whole(handle: Any, op: Any, function: Any = None, *makers: Any) -> None:
    """Emit the comparison of an op with its whole body; arguments as of :func:`match_op`.

    Of the ops that read a result, that which was made last is the first.
    """
    any_op = transform.AnyOpType.get()
    if makers:
        append_inlined_call(handle, transform.merge_handles(list(map(result_of, makers))), None, function)
        readers = transform.get_consumers_of_result(any_op, handle, 0)
        apart = transform.SplitHandleOp([any_op] * 2, readers, overflow_result=1, fail_on_payload_too_small=False)
        handle = apart.results[0]
    block = append_dag(handle, [of_any_size(value.type) for value in op.operands])
    with ir.InsertionPoint(block):
        copy = copied_with_constants(op, list(block.arguments))
        for result in copy.results:
            result.set_type(of_any_size(result.type))
        if makers:
            hold(*held(copy))
        transform.YieldOp()


def _is_whole(op: Any) -> bool:
    """Say whether the body of an op is compared as a whole: it uses no tensors from outside, which may be resources."""
    return op.name == GENERIC and all(constant_of(value) is not None and not is_static(value) for value in captured(op))
