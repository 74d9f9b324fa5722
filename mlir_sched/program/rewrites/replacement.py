"""Matchers and replacements of program rewrites, as ops of the transform dialect in the current context."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.operations import named_attributes
from mlir_sched.program.rewrites.linalg_ops import copied
from mlir_sched.transform_scripts.script.building import append_dag, append_inlined_call, propagate, suppress
from mlir_sched.transform_scripts.script.form import LOOKUP

MEMOIZED = "linalg.memoized_indexing_maps"
"""Attribute that MLIR writes into a named op when something asks for the op's maps; they follow from the name."""
_EQUAL, _AT_MOST = 0, 3
"""Relations of two numbers: values of ``transform``'s ``MatchCmpIPredicate``."""
Result = tuple[Any, int]
"""A handle on an op, and the number of one of its results."""


def append_sequence(library: ir.Module, symbol: str, body: Callable[[Any], Any], *, consumes: bool = False) -> None:
    """Append a named sequence from one handle, consumed or read-only, to the handle that its body returns."""
    any_op = transform.AnyOpType.get()
    use = {"transform.consumed" if consumes else "transform.readonly": ir.UnitAttr.get()}
    with ir.InsertionPoint(library.body):
        sequence = transform.NamedSequenceOp(symbol, [any_op], [any_op], arg_attrs=[use])
    with ir.InsertionPoint(sequence.body):
        transform.YieldOp([body(sequence.bodyTarget)])


def append_in_turn(library: ir.Module, symbols: Sequence[str]) -> str:
    """Append a sequence that includes others in turn, and return its symbol; that of a single one is returned as it is.

    Args:
        library: The library.
        symbols: The sequences, at least one; each consumes the program's module and returns it.
    """
    if len(symbols) == 1:
        return symbols[0]

    def rewrite(module: Any) -> Any:
        for symbol in symbols:
            module = included(symbol, module)
        return module

    name = "_and_".join(symbols)
    append_sequence(library, name, rewrite, consumes=True)
    return name


def append_trial(library: ir.Module, symbol: str, body: Callable[[Any], Any]) -> None:
    """Append a named sequence that may fail, for :func:`passing`; arguments as of :func:`append_sequence`.

    A sequence that suppresses failures goes on with its next op, so it holds the call of the sequence that fails alone.
    """
    append_sequence(library, f"{symbol}_or_fail", body)
    append_sequence(library, symbol, lambda handle: included(f"{symbol}_or_fail", handle))


def append_function(
    library: ir.Module,
    symbol: str,
    arguments: Sequence[Any],
    results: Sequence[Any],
    body: Callable[..., Sequence[Any]],
) -> None:
    """Append a private ``util.func`` whose body gets its arguments and returns its results."""
    attributes = {
        "sym_name": ir.StringAttr.get(symbol),
        "sym_visibility": ir.StringAttr.get("private"),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(list(arguments), list(results))),
    }
    with ir.InsertionPoint(library.body):
        function = ir.Operation.create("util.func", attributes=attributes, regions=1)
    block = function.regions[0].blocks.append(*arguments)
    with ir.InsertionPoint(block):
        ir.Operation.create("util.return", operands=list(body(*block.arguments)))


def match_dag(root: Any, leaves: Sequence[Any], handle: Any) -> None:
    """Emit a comparison of an op, and of all ops that it is computed from down to the leaves, with their clones.

    Where the leaves are the operands of the op, two of them may be one value here and two elsewhere.
    """
    block = append_dag(handle, [leaf.type for leaf in leaves])
    with ir.InsertionPoint(block):
        if list(root.operands) == list(leaves):
            copied(root, list(block.arguments))
        else:
            _clone(root, dict(zip(leaves, block.arguments, strict=True)))
        transform.YieldOp()


def attributes_of(op: Any) -> tuple[tuple[str, ir.Attribute], ...]:
    """Return the attributes of an op with their names, in the order of these, without :data:`MEMOIZED`."""
    return tuple((each.name, each.attr) for each in named_attributes(op) if each.name != MEMOIZED)


def match_type(value: Any, type_: ir.Type) -> None:
    """Emit a comparison of a value's type."""
    attributes = {"target_type": ir.TypeAttr.get(type_)}
    ir.Operation.create("transform.iree.match.cast_compatible_type", operands=[value], attributes=attributes)


def require_same(first: Any, second: Any) -> None:
    """Emit a failure of the sequence unless two handles refer to the same value."""
    require_number(transform.merge_handles([first, second], deduplicate=True), 1)


def require_number(handle: Any, number: int) -> None:
    """Emit a failure of the sequence unless a handle refers to exactly ``number`` ops."""
    _require(handle, number, _EQUAL)


def require_at_most(handle: Any, number: int) -> None:
    """Emit a failure of the sequence where a handle refers to more than ``number`` ops."""
    _require(handle, number, _AT_MOST)


def _require(handle: Any, number: int, relation: int) -> None:
    param = transform.ParamType.get(ir.IntegerType.get_signless(64))
    found = transform.NumAssociationsOp(param, handle).result
    wanted = transform.ParamConstantOp(param, ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)).result
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), relation)
    transform.MatchParamCmpIOp(found, wanted, predicate)


def mark(handle: Any, rewrite: str) -> None:
    """Emit the attribute that proves a rewrite, on all ops of a handle."""
    name = transform.ParamConstantOp(transform.AnyParamType.get(), ir.StringAttr.get(rewrite)).result
    transform.AnnotateOp(handle, REWRITTEN, param=name)


def included(symbol: str, handle: Any) -> Any:
    """Emit a call of a named sequence, with its failure, and return the handle that it returns."""
    return transform.IncludeOp([transform.AnyOpType.get()], symbol, propagate(), [handle]).results[0]


def split(handle: Any, number: int) -> Sequence[Any]:
    """Emit a handle on every op, or value, of a handle on so many."""
    return list(transform.SplitHandleOp([handle.type] * number, handle).results)


def passing(handle: Any, symbol: str) -> Any:
    """Emit a handle on those ops of a handle with which a sequence of :func:`append_trial` does not fail."""
    each = transform.ForeachOp([transform.AnyOpType.get()], [handle])
    with ir.InsertionPoint(each.body):
        passed = transform.IncludeOp([transform.AnyOpType.get()], symbol, suppress(), [each.bodyTargets[0]])
        transform.YieldOp(passed.results)
    return each.results[0]


def ops_named(
    handle: Any, name: str, attributes: Mapping[str, Any] | None = None, result: ir.Type | None = None
) -> Any:
    """Emit a handle on all ops with a name, attributes, and a type of the result, at or below a handle's op."""
    given: dict[str, ir.Attribute] = {"ops": ir.ArrayAttr.get([ir.StringAttr.get(name)])}
    if attributes:
        given["op_attrs"] = ir.DictAttr.get(dict(attributes))
    if result is not None:
        given["filter_result_type"] = ir.TypeAttr.get(result)
    found = [transform.AnyOpType.get()]
    return ir.Operation.create("transform.structured.match", operands=[handle], results=found, attributes=given).result


def ops_within(handle: Any) -> Any:
    """Emit a handle on a handle's op and on all ops in its bodies."""
    found = [transform.AnyOpType.get()]
    return ir.Operation.create("transform.structured.match", operands=[handle], results=found).result


def only_op(handle: Any, name: str, attributes: Mapping[str, Any] | None = None) -> Any:
    """Emit a handle on the only op with a name, and attributes, at or below a handle's op; fail if not exactly one."""
    found = ops_named(handle, name, attributes)
    require_number(found, 1)
    return found


def producer_of(handle: Any, operand: int) -> Any:
    """Emit a handle on the op that makes an operand."""
    return transform.GetProducerOfOperand(transform.AnyOpType.get(), handle, operand).result


def operand_of(handle: Any, *operands: int) -> Any:
    """Emit a handle on the values of some operands."""
    return _values("transform.get_operand", handle, operands)


def operands_of(handle: Any, but: int = 0) -> Any:
    """Emit a handle on the values of all operands, but for so many of the last ones."""
    return _values("transform.get_operand", handle, range(-but, 0), inverted=True)


def result_of(handle: Any, number: int = 0) -> Any:
    """Emit a handle on a result's value."""
    return _values("transform.get_result", handle, (number,))


def function_of(symbol: str) -> Any:
    """Emit a handle on a function of the library."""
    attributes = {"symbol": ir.FlatSymbolRefAttr.get(symbol)}
    return ir.Operation.create(LOOKUP, results=[transform.AnyOpType.get()], attributes=attributes).result


def replace(handle: Any, function: str, inputs: Sequence[Any]) -> None:
    """Emit the replacement of an op's result by the result of a library function of ``inputs``, inlined.

    Args:
        handle: A handle on the op.
        function: Symbol of the function.
        inputs: Handles on its arguments.
    """
    any_op = transform.AnyOpType.get()
    symbols = ir.Operation.create("transform.util.get_nearest_symbol_table", operands=[handle], results=[any_op])
    imported = ir.Operation.create(
        "transform.util.import_symbol",
        operands=[symbols.result],
        results=[any_op],
        attributes={"symbol": ir.FlatSymbolRefAttr.get(function), "if_undefined": ir.UnitAttr.get()},
    )
    replace_by([(handle, 0)], imported.result, inputs)


def replace_by(results: Sequence[Result], function: Any, inputs: Sequence[Any], *, any_size: bool = False) -> None:
    """Emit the replacement of results by those of a function, inlined behind the op that makes the first of them.

    Args:
        results: What is replaced.
        function: A handle on the function.
        inputs: Handles on its arguments.
        any_size: Whether tensors may have other sizes than those of the function, where these are not known.
    """
    given, replaced = transform.merge_handles(inputs), [result_of(*result) for result in results]
    outputs = replaced[0] if len(replaced) == 1 else transform.merge_handles(replaced)
    append_inlined_call(results[0][0], given, outputs, function, any_size=any_size)


def _values(name: str, handle: Any, numbers: Sequence[int], *, inverted: bool = False) -> Any:
    """Emit a handle on some operands or results of an op; on all others where inverted."""
    attributes: dict[str, ir.Attribute] = {"raw_position_list": ir.DenseI64ArrayAttr.get(list(numbers))}
    if inverted:
        attributes["is_inverted" if numbers else "is_all"] = ir.UnitAttr.get()
    found = [transform.AnyValueType.get()]
    return ir.Operation.create(name, operands=[handle], results=found, attributes=attributes).result


def _clone(op: Any, values: dict[Any, Any]) -> Any:
    for operand in op.operands:
        if operand not in values:
            values |= dict(zip(operand.owner.results, _clone(operand.owner, values).results, strict=True))
    return copied(op, [values[operand] for operand in op.operands])
