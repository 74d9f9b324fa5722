"""Traversals of the operations of an MLIR program."""

from collections.abc import Callable, Container, Iterator
from typing import Any

from iree.compiler import ir

_DISPATCH_CONFIG = "iree_codegen.dispatch_config"


def captured(op: Any) -> list[Any]:
    """Return the values from outside that the bodies of an op use, such as constants of the function."""
    inner = list(walk(op))
    if not inner:
        return []
    blocks = [block for each in (op, *inner) for region in each.regions for block in region]
    own = {argument for block in blocks for argument in block.arguments} | {
        value for each in inner for value in each.results
    }
    return [value for each in inner for value in each.operands if value not in own]


def captures_constants_alone(op: Any, others: Container[Any] = ()) -> bool:
    """Say whether the bodies of an op use nothing from outside but constants, and values that are given."""
    return all(value in others or constant_of(value) is not None for value in captured(op))


def constant_of(value: Any) -> Any:
    """Return the attribute of the constant that a value is; None for any other value."""
    op = producer(value)
    return op.attributes["value"] if op is not None and op.name == "arith.constant" else None


def declarations(op: Any) -> Iterator[Any]:
    """Yield every operation inside an operation, in pre-order, but none in the bodies of functions."""
    for region in op.regions:
        for block in region:
            for child in block:
                yield child.operation
                if not child.operation.name.endswith(".func"):
                    yield from declarations(child.operation)


def dispatch_configs(function: Any) -> list[Any]:
    """Return the operations beside a dispatch's function that hold the number of workgroups."""
    beside = (op.operation for op in function.parent.regions[0].blocks[0])
    return [op for op in beside if op.name == _DISPATCH_CONFIG]


def first_function(root: Any) -> Any:
    """Return the first ``func.func`` with a body at or below an operation, or None."""
    return next(functions(root), None)


def functions(root: Any) -> Iterator[Any]:
    """Yield every ``func.func`` with a body at or below an operation."""
    if root.name == "func.func" and root.regions[0].blocks:
        yield root
        return
    for region in root.regions:
        for block in region:
            for op in block:
                yield from functions(op.operation)


def named_attributes(op: Any) -> Iterator[Any]:
    """Yield the attributes of an operation with their names; the bindings iterate over the names alone."""
    attributes = op.attributes
    return (attributes[i] for i in range(len(attributes)))


def only_use(value: Any) -> Any | None:
    """Return the use of a value as an operand; None where there are several, or none."""
    uses = [*value.uses]
    return uses[0] if len(uses) == 1 else None


def producer(value: Any) -> Any:
    """Return the operation that makes a value, or None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) else getattr(owner, "operation", owner)


def source_of(value: Any, passes: Callable[[Any], bool]) -> Any:
    """Return the value that ops make a value of, each of its first operand; itself where another op makes it.

    Args:
        value: The value.
        passes: Says which ops these are.
    """
    while (op := producer(value)) is not None and passes(op):
        value = op.operands[0]
    return value


def symbol_of(op: Any) -> str:
    """Return the symbol that an operation defines."""
    return str(ir.StringAttr(op.attributes["sym_name"]).value)


def walk(op: Any) -> Iterator[Any]:
    """Yield every operation inside an operation, in pre-order."""
    for region in op.regions:
        for block in region:
            for child in block:
                yield child.operation
                yield from walk(child.operation)
