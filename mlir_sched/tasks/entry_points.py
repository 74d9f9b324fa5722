"""The public functions of a program at the flow phase, with the tensors they take and return."""

from __future__ import annotations

from typing import Any

from iree.compiler import ir

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.tasks.analysis import dynamic_dim
from mlir_sched.tasks.call_counts import callee_of, functions_of, is_public, operations_below, uncalled
from mlir_sched.tasks.model import EntryPoint


def entry_points(path: str, module: Any) -> tuple[EntryPoint, ...]:
    """Return the functions that a user calls.

    A torch program has a pair of functions, ``main$async`` and ``main`` that calls it; only the latter is returned.

    Raises:
        UserError: A function takes or returns a tensor with a dynamic dimension.
    """
    functions = functions_of(module)
    entries = []
    for name in uncalled(functions):
        function = functions[name]
        if is_public(function):
            inputs = _specs(path, name, "argument", _inputs(function, functions))
            outputs = _specs(path, name, "result", _outputs(function, functions))
            entries.append(EntryPoint(name, inputs, outputs))
    return tuple(entries)


def _specs(path: str, name: str, role: str, types: list[Any]) -> tuple[TensorSpec, ...]:
    specs = []
    for index, type_ in enumerate(types):
        dim = dynamic_dim(type_)
        if dim is not None:
            raise UserError(
                f"{path}: dynamic shapes are not supported yet: dimension {dim} of {role} {index} of @{name}, "
                f"{type_}, is dynamic; give the program a static shape"
            )
        specs.append(_spec(type_))
    return tuple(specs)


def _spec(type_: Any) -> TensorSpec:
    if isinstance(type_, ir.RankedTensorType):
        return TensorSpec(tuple(type_.shape), str(type_.element_type))
    return TensorSpec((), str(type_))


def _inputs(function: Any, functions: dict[str, Any]) -> list[Any]:
    """Return the tensor types that the arguments are imported as; an argument that is not used has none."""
    types = (_imported_as(argument, functions) for argument in function.regions[0].blocks[0].arguments)
    return [type_ for type_ in types if type_ is not None]


def _imported_as(value: Any, functions: dict[str, Any]) -> Any:
    if str(value.type) not in ("!hal.buffer_view", "!hal.fence"):
        return value.type
    for use in value.uses:
        user = use.owner.operation
        if user.name == "hal.tensor.import":
            return user.results[0].type
        callee = functions.get(callee_of(user) or "")
        if callee is not None and str(value.type) == "!hal.buffer_view":
            return _imported_as(callee.regions[0].blocks[0].arguments[use.operand_number], functions)
    return None


def _outputs(function: Any, functions: dict[str, Any]) -> list[Any]:
    returns = next(op for op in operations_below(function) if op.name == "util.return")
    return [_exported_from(value, functions) for value in returns.operands]


def _exported_from(value: Any, functions: dict[str, Any]) -> Any:
    owner = getattr(value.owner, "operation", None)
    if owner is None:
        return value.type
    if owner.name == "hal.tensor.export":
        return owner.operands[0].type
    callee = functions.get(callee_of(owner) or "")
    if callee is None:
        return value.type
    index = next(i for i, result in enumerate(owner.results) if result == value)
    return _outputs(callee, functions)[index]
