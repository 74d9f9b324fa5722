"""The matcher of one dispatch: transform ops that recognise it by its structure, from its store up to its bindings.

``transform.iree.match.cast_compatible_dag_from_root`` compares ops, attributes, types and bodies. It cannot see
constants that a body captures (found in IREE 3.13: such a body never compares equal), so an op with captures is
recognised by name, loops and extents instead, and the match goes on at the producers of its operands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.compiler.session import first_function, producer
from mlir_sched.errors import MlirSchedError
from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.tasks.preconfiguration import run_preconfiguration
from mlir_sched.transform_scripts.script import append_dag

STORE = "iree_tensor_ext.dispatch.tensor.store"
_LEAVES = ("hal.interface.binding.subspan", "hal.interface.constant.load")


def append_matcher(module: Any, symbol: str, source: str, dispatch: Dispatch) -> None:
    """Append a matcher to a transform library (in the current context); it returns the dispatch's store.

    Args:
        module: The library.
        symbol: Name of the matcher's sequence.
        source: The task's program (``Task.source``).
        dispatch: Its ops.

    Raises:
        MlirSchedError: The dispatch has no store to match from.
    """
    any_op = transform.AnyOpType.get()
    readonly = [{"transform.readonly": ir.UnitAttr.get()}]
    payload = _prepared_module(source)  # owns the operations that the matcher is made from
    function = first_function(payload.operation)
    operations = [op.operation for op in function.regions[0].blocks[0]]
    stores = [op for op in operations if op.name == STORE]
    if not stores:
        raise MlirSchedError("the dispatch has no store to match from")
    with ir.InsertionPoint(module.body):
        sequence = transform.NamedSequenceOp(symbol, [any_op], [any_op], arg_attrs=readonly)
    with ir.InsertionPoint(sequence.body):
        linalg = [op for op in operations if op.name.startswith("linalg.")]
        _Matcher(operations, dict(zip(linalg, dispatch.ops, strict=True))).match(sequence.bodyTarget, stores[-1])
        transform.YieldOp([sequence.bodyTarget])


class _Matcher:
    def __init__(self, operations: Sequence[Any], linalg: dict[Any, LinalgOp]) -> None:
        self._operations = operations
        self._linalg = linalg
        self._matched: set[Any] = set()

    def match(self, handle: Any, op: Any) -> None:
        """Emit the match of an op and everything it is computed from."""
        if op in self._matched:
            return
        self._matched.add(op)
        transform.MatchOperationNameOp(handle, [op.name])
        needed = self._needed_by(op)
        if not any(_captures(other) for other in needed):
            _emit_dag(handle, needed)
            return
        if op in self._linalg:
            _emit_loops(handle, self._linalg[op])
        for number, operand in enumerate(op.operands):
            made_by = producer(operand)
            if made_by is not None and made_by.name not in (*_LEAVES, "arith.constant", "tensor.empty"):
                with ir.Location.name("producer"):
                    found = transform.GetProducerOfOperand(transform.AnyOpType.get(), handle, number).result
                self.match(found, made_by)

    def _needed_by(self, root: Any) -> list[Any]:
        """Return the root and everything it depends on, in program order; a leaf hides what it depends on."""
        wanted = {root}
        for op in reversed(self._operations):
            if op in wanted and op.name not in _LEAVES:
                wanted |= {made_by for value in _used(op) if (made_by := producer(value)) is not None}
        return [op for op in self._operations if op in wanted]


def _prepared_module(source: str) -> Any:
    """Return a task's program with its dispatch as a strategy meets it (in the current context)."""
    module = ir.Module.parse(source)
    run_preconfiguration(first_function(module.operation))
    return module


def _emit_dag(handle: Any, needed: Sequence[Any]) -> None:
    """Emit a comparison of the last op, and all others up to the bindings, with clones of them."""
    leaves = [op for op in needed if op.name in _LEAVES]
    block = append_dag(handle, [leaf.results[0].type for leaf in leaves])
    values = {leaf.results[0]: argument for leaf, argument in zip(leaves, block.arguments, strict=True)}
    with ir.InsertionPoint(block):
        for op in needed:
            if op.name not in _LEAVES:
                copy = op.clone()
                _remap(copy, values)
                values |= dict(zip(op.results, copy.results, strict=True))
        transform.YieldOp()


def _emit_loops(handle: Any, op: LinalgOp) -> None:
    """Emit a check of a structured op's loops: how many, which reduce, and their extents."""
    any_op, param = transform.AnyOpType.get(), transform.ParamType.get(ir.IntegerType.get_signless(64))
    suppress = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
    structured = ir.Operation.create(
        "transform.match.structured",
        operands=[handle],
        attributes={"failure_propagation_mode": suppress},
        regions=1,
    )
    block = structured.regions[0].blocks.append(any_op)
    with ir.InsertionPoint(block):
        rank = ir.Operation.create("transform.match.structured.rank", operands=block.arguments, results=[param])
        _emit_equal(rank.result, [len(op.extents)])
        for kind, loops in (("parallel", op.parallel_dims), ("reduction", op.reduction_dims)):
            if loops:
                positions = {"raw_dim_list": ir.DenseI64ArrayAttr.get(loops), kind: ir.UnitAttr.get()}
                dims = ir.Operation.create(
                    "transform.match.structured.dim", operands=block.arguments, results=[param], attributes=positions
                )
                _emit_equal(dims.result, [op.extents[loop] for loop in loops])
        ir.Operation.create("transform.match.structured.yield")


def _emit_equal(param: Any, values: Sequence[int]) -> None:
    ir.Operation.create(
        "transform.iree.match.dims_equal",
        operands=[param],
        attributes={"expected_values": ir.DenseI64ArrayAttr.get(list(values))},
    )


def _captures(op: Any) -> bool:
    """Say whether the body of an op uses a value from outside of it."""
    inside: set[Any] = set()
    return any(value not in inside for value in _used_inside(op, inside))


def _used_inside(op: Any, inside: set[Any]) -> Iterator[Any]:
    for region in op.regions:
        for block in region:
            inside |= set(block.arguments)
            for inner in block:
                yield from inner.operation.operands
                inside |= set(inner.operation.results)
                yield from _used_inside(inner.operation, inside)


def _used(op: Any) -> Iterator[Any]:
    """Yield the values that an op and the ops inside it use."""
    yield from op.operands
    yield from _used_inside(op, set())


def _remap(op: Any, values: dict[Any, Any]) -> None:
    for index, operand in enumerate(op.operands):
        if operand in values:
            op.operands[index] = values[operand]
    for region in op.regions:
        for block in region:
            for inner in block:
                _remap(inner.operation, values)
