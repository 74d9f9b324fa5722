"""The constants of a model, such as its weights: which inputs of a dispatch they are, and how long they stay in caches.

A run of a model reads each of its weights once. Until the next run reads the same weights again, all others have been
through the caches, so a dispatch of a large model finds its weights in the last cache or in memory. A dispatch that is
timed in a loop on one set of weights finds them in the core's own cache, and may be up to twice as fast.
"""

from collections.abc import Collection, Sequence
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer, source_of, symbol_of, walk
from mlir_sched.tasks.worker.analysis import NotTunableError, tensor_spec

LEAST_BYTES = 2**21
"""Constants of a whole model that stay in the cache of a core, about."""
MOST_BYTES = 2**28
"""Constants that no cache of a core's share holds, about."""
_GLOBAL, _LOAD, _STORE = "util.global", "util.global.load", "util.global.store"
_CONSTANTS = ("arith.constant", "flow.tensor.constant")
VIEWS = ("flow.tensor.reshape", "flow.tensor.bitcast", "tensor.collapse_shape", "tensor.expand_shape", "tensor.cast")


def reuse_bytes(module: Any) -> int:
    """Return how many bytes of constants a program reads between two calls with the same constants.

    What the program's functions change between calls is no constant.

    Args:
        module: The program after IREE's abi phase: as the user wrote it, before any rewrite.

    Returns:
        The bytes of all its constants, at most :data:`MOST_BYTES`, rounded up to a power of two, so that small changes
        of a model do not matter; 0 for a program with less than :data:`LEAST_BYTES`.
    """
    changed = changed_globals(module)
    size = sum(_constant_bytes(op, changed) for op in walk(module))
    return 0 if size < LEAST_BYTES else min(MOST_BYTES, 1 << (size - 1).bit_length())


def weight_bytes(module: Any) -> int:
    """Return how many bytes of constants the functions of a program read: its weights, as its calls need them.

    Constants that only others are computed from, when the program is loaded, do not count, and a constant with several
    views counts once.

    Args:
        module: The program at the flow phase.
    """
    top = [op.operation for op in module.regions[0].blocks[0]]
    changed, same = changed_globals(module), _views(top)
    inside = [op for each in top if each.name == "util.func" for op in walk(each)]
    names = {global_of(op) for op in inside if op.name == _LOAD}
    read = {same.get(name, name) for name in names}
    kept = (op for op in top if op.name == _GLOBAL and symbol_of(op) in read)
    return sum(_constant_bytes(op, changed) for op in (*kept, *inside))


def _views(top: Sequence[Any]) -> dict[str, str]:
    """Return what globals are views of by their names, where initializers make them views of other globals."""
    found: dict[str, str] = {}
    for op in (op for each in top if each.name == "util.initializer" for op in walk(each) if op.name == _STORE):
        source = _viewed(op.operands[0])
        if source is not None and source.name == _LOAD:
            found[global_of(op)] = found.get(global_of(source), global_of(source))
    return found


def changed_globals(module: Any) -> frozenset[str]:
    """Return the names of the globals that functions may change between calls; initializers run before all calls."""
    operations = [op.operation for op in module.regions[0].blocks[0] if op.operation.name != "util.initializer"]
    writes = (op for each in operations for op in walk(each) if op.name in (_STORE, "util.global.address"))
    return frozenset(global_of(op) for op in writes)


def is_constant(value: Any, changed: Collection[str]) -> bool:
    """Say whether an operand of a dispatch, at the flow phase, is a constant of the program, or a view of one."""
    op = _viewed(value)
    if op is None or op.name != _LOAD:
        return op is not None and op.name in _CONSTANTS
    return global_of(op) not in changed


def _viewed(value: Any) -> Any:
    """Return the operation that makes what a value is a view of, the value itself included; None for an argument."""
    return producer(source_of(value, lambda op: op.name in VIEWS))


def global_of(op: Any) -> str:
    """Return the name of the global that an operation loads, stores or takes the address of."""
    return str(ir.FlatSymbolRefAttr(op.attributes["global"]).value)


def _constant_bytes(op: Any, changed: Collection[str]) -> int:
    """Return the size in bytes of the tensor that an operation defines as a constant; 0 for any other operation."""
    if op.name == _GLOBAL and symbol_of(op) not in changed:
        type_ = ir.TypeAttr(op.attributes["type"]).value
    elif op.name in _CONSTANTS and not _is_splat(op.attributes["value"]):
        type_ = op.results[0].type
    else:
        return 0
    try:
        return tensor_spec(type_).bytes if isinstance(type_, ir.RankedTensorType) else 0
    except NotTunableError:
        return 0


def _is_splat(value: Any) -> bool:
    return isinstance(value, ir.DenseElementsAttr) and value.is_splat
