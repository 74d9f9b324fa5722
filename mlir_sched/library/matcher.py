"""The matcher of one dispatch: transform ops that recognise it by its structure, from its stores up to its bindings.

``transform.iree.match.cast_compatible_dag_from_root`` compares ops, attributes, types and bodies, but no body that uses
a value from outside, such as a constant of the function (found in IREE 3.13: such bodies never compare equal). An op
with such a body is taken apart: the matcher compares its attributes and types, then the DAG of the values that its body
yields, down to the constants and their values. Of the arguments and the ``linalg.index`` ops of such a body the matcher
sees the types and which uses belong to the same value, but not the positions: it takes ``x - y`` for ``y - x``. The
proof of the emitted program (``program/proof.py``) finds such a mistake.

Source: IREE, Preprocessing/TransformExtensions/PreprocessingExtensions.cpp and Utils/EquivalenceUtils.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform
from iree.compiler.dialects.transform import structured

from mlir_sched.compiler.operations import captured, named_attributes, producer
from mlir_sched.errors import MlirSchedError
from mlir_sched.transform_scripts.script.building import append_dag
from mlir_sched.transform_scripts.script.form import to_attribute

STORE, STORE_TO_BUFFER = "iree_tensor_ext.dispatch.tensor.store", "iree_codegen.store_to_buffer"
"""How a dispatch writes a result; the second on CUDA."""
FUNCTION = "func.func"
_LEAVES = (
    "hal.interface.binding.subspan",
    "hal.interface.constant.load",
    "iree_codegen.load_from_buffer",
    "linalg.index",
)
"""Where a comparison ends. The types of buffers tell where they begin, which differs between program and dispatch."""
_SEGMENTS = "operandSegmentSizes"


def append_matcher(module: Any, symbol: str, function: Any, *, claimed: str, only: Sequence[str] = ()) -> None:
    """Append a matcher to a transform library (in the current context).

    The matcher takes a dispatch's function and returns it, or fails silently.

    Args:
        function: The function of the dispatch, as scripts meet it.
        claimed: Attribute of functions that another sequence was chosen for, which do not match.
        only: Names of the functions that may match; when empty, every name may match.

    Raises:
        MlirSchedError: The dispatch has no store to match from.
    """
    any_op = transform.AnyOpType.get()
    readonly = [{"transform.readonly": ir.UnitAttr.get()}]
    operations = [op.operation for op in function.regions[0].blocks[0]]
    kind = next((op.name for op in operations if op.name in (STORE, STORE_TO_BUFFER)), "")
    stores = [op for op in operations if op.name == kind]
    if not stores:
        raise MlirSchedError("the dispatch has no store to match from")
    with ir.InsertionPoint(module.body):
        sequence = transform.NamedSequenceOp(symbol, [any_op], [any_op], arg_attrs=readonly)
    with ir.InsertionPoint(sequence.body):
        target = sequence.bodyTarget
        _require_count(_find(FUNCTION, target, attributes={claimed: ir.UnitAttr.get()}), 0)
        if only:
            named = [_find(FUNCTION, target, attributes={"sym_name": ir.StringAttr.get(name)}) for name in only]
            _require_count(transform.MergeHandlesOp(named).result, 1)
        found = _find(kind, target)
        _require_count(found, len(stores))
        matcher = _Matcher()
        for handle, store in zip(_split(found, len(stores)), stores, strict=True):
            if kind == STORE:
                matcher.match(handle, store)
            else:
                matcher.match_operand(handle, store, 0)
        transform.YieldOp([target])


class _Matcher:
    """Emits matches; ops that two stores share are matched once."""

    def __init__(self) -> None:
        self._matched: set[Any] = set()

    def match(self, handle: Any, op: Any) -> None:
        """Emit the match of an op and everything it is computed from."""
        if op in self._matched:
            return
        self._matched.add(op)
        needed = _needed_by(op)
        if not any(captured(other) for other in needed):
            _emit_dag(handle, needed)
            return
        append_comparison_with_constants(handle, op)
        for number in range(len(op.operands)):
            self.match_operand(handle, op, number)

    def match_operand(self, handle: Any, op: Any, number: int) -> None:
        """Emit the match of everything that an operand of an op is computed from; nothing for a leaf."""
        made_by = producer(op.operands[number])
        if made_by is not None and made_by.name not in _LEAVES:
            with ir.Location.name("producer"):
                found = transform.GetProducerOfOperand(transform.AnyOpType.get(), handle, number).result
            self.match(found, made_by)


def append_comparison_with_constants(handle: Any, op: Any) -> None:
    """Append a comparison of an op whose body uses constants from outside: its attributes, types and what it yields."""
    _require_count(_find_like(op, handle), 1)
    if op.regions:
        append_comparison_of_body(handle, op)


def append_comparison_of_body(
    handle: Any, op: Any, is_given: Callable[[Any], bool] = lambda _: False
) -> list[tuple[Any, list[Any]]]:
    """Append a comparison of every value that the body of an op yields.

    Args:
        handle: A handle on the compared op.
        op: The op.
        is_given: Says of a value from which others are computed whether the comparison ends there.

    Returns:
        Per value that an op makes, a handle on the values at which its comparison ends, and these values.
    """
    *_, terminator = [inner.operation for inner in op.regions[0].blocks[0]]
    with ir.Location.name("yield"):
        yielding = _find(terminator.name, handle)
    _require_count(yielding, 1)
    ends = list[tuple[Any, list[Any]]]()
    for number, operand in enumerate(terminator.operands):
        made_by = producer(operand)
        if made_by is not None and made_by.name not in _LEAVES:
            with ir.Location.name("yielded"):
                found = transform.GetProducerOfOperand(transform.AnyOpType.get(), yielding, number).result
            ends.append(_emit_dag(found, _needed_by(made_by, is_given)))
    return ends


def _needed_by(root: Any, is_given: Callable[[Any], bool] = lambda _: False) -> list[Any]:
    """Return the root and everything it depends on, each op behind those that it uses; a leaf ends the search."""
    ordered: dict[Any, None] = {}

    def visit(op: Any) -> None:
        if op not in ordered:
            if op.name not in _LEAVES:
                for made_by in (producer(value) for value in _used(op) if not is_given(value)):
                    if made_by is not None:
                        visit(made_by)
            ordered[op] = None

    visit(root)
    return [*ordered]


def _find(name: str, within: Any, **filters: Any) -> Any:
    """Emit the search for ops with a name, and with equal ``attributes``, at or below an op."""
    attributes = filters.pop("attributes", None)
    if attributes:
        filters["op_attrs"] = ir.DictAttr.get(attributes)
    return structured.MatchOp(transform.AnyOpType.get(), within, ops=to_attribute([name]), **filters).result


def _find_like(op: Any, handle: Any) -> Any:
    """Emit a search at or below a handle for an op that has the name, attributes and types of ``op``."""
    attributes = {a.name: a.attr for a in named_attributes(op) if a.name != _SEGMENTS}
    filters: dict[str, Any] = {}
    if len(op.results) == 1:
        filters["filter_result_type"] = ir.TypeAttr.get(op.results[0].type)
    if len(op.operands):
        types = [ir.TypeAttr.get(operand.type) for operand in op.operands]
        filters["filter_operand_types"] = ir.ArrayAttr.get(types)
    with ir.Location.name("like"):
        return _find(op.name, handle, attributes=attributes, **filters)


def _require_count(handle: Any, count: int) -> None:
    """Emit a check that a handle refers to exactly ``count`` ops; it fails silently."""
    i64 = ir.IntegerType.get_signless(64)
    param = transform.ParamType.get(i64)
    with ir.Location.name("count"):
        found = transform.NumAssociationsOp(param, handle).result
    with ir.Location.name(f"n{count}"):
        wanted = transform.ParamConstantOp(param, ir.IntegerAttr.get(i64, count)).result
    equal = ir.Attribute.parse("0 : i32")  # MatchCmpIPredicate::eq
    ir.Operation.create("transform.match.param.cmpi", operands=[found, wanted], attributes={"predicate": equal})


def _split(handle: Any, count: int) -> Sequence[Any]:
    if count == 1:
        return [handle]
    with ir.Location.name("store"):
        return list(transform.SplitHandleOp([transform.AnyOpType.get()] * count, handle).results)


def _emit_dag(handle: Any, needed: Sequence[Any]) -> tuple[Any, list[Any]]:
    """Emit a comparison of the last op, and of the other ops up to leaves and arguments, with clones of all of them.

    Returns:
        A handle on the values at which the comparison ends, and these values.
    """
    inner = [op for op in needed if op.name not in _LEAVES]
    made = {result for op in inner for result in op.results}
    leaves = dict.fromkeys(value for op in inner for value in _used(op) if value not in made)
    block = append_dag(handle, [leaf.type for leaf in leaves])
    values = dict(zip(leaves, block.arguments, strict=True))
    with ir.InsertionPoint(block):
        for op in inner:
            copy = op.clone()
            _remap(copy, values)
            values |= dict(zip(op.results, copy.results, strict=True))
        transform.YieldOp()
    return block.owner.operation.results[0], [*leaves]


def _used(op: Any) -> Iterator[Any]:
    """Yield the values from outside that an op and the ops inside it use."""
    yield from op.operands
    yield from captured(op)


def _remap(op: Any, values: dict[Any, Any]) -> None:
    for index, operand in enumerate(op.operands):
        if operand in values:
            op.operands[index] = values[operand]
    for region in op.regions:
        for block in region:
            for inner in block:
                _remap(inner.operation, values)
