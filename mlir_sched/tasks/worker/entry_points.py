"""The public functions of a program at the flow phase, with the tensors they take and return."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from iree.compiler import ir

from mlir_sched.errors import UserError
from mlir_sched.payload import ELEMENT_BYTES, TensorSpec
from mlir_sched.tasks.model import EntryPoint
from mlir_sched.tasks.worker.analysis import dynamic_dim
from mlir_sched.tasks.worker.call_counts import callee_of, functions_of, is_public, operations_below, uncalled
from mlir_sched.tasks.worker.constants import changed_globals, global_of
from mlir_sched.tasks.worker.integers.integer_ranges import IntegerRanges, Integers

_UNUSED = TensorSpec((), "f32")
"""The tensor passed for an argument that its function does not use, and whose type cannot be made: any will do."""
_PASSED_AS = {"index": "i64"}
"""Scalar types in a signature that IREE's virtual machine replaces, with the replacement."""
_REFLECTION, _DECLARATION = "iree.reflection", "iree.abi.declaration"
"""Where IREE keeps the types of the function that the user wrote, as text::

    sync func @main(%input0: tensor<64x96xf32>, %input1: i32) -> (%output0: tensor<64x96xf32>)
"""
_SIGNED = re.compile(r"[su](i\d+)>$")
_TENSOR = re.compile(r"%(input|output)(\d+): (tensor<(?:[^<>]|<[^<>]*>)*>)")
_LOAD, _STORE, _ADDRESS = "util.global.load", "util.global.store", "util.global.address"


def entry_points(path: str, module: Any) -> tuple[EntryPoint, ...]:
    """Return the functions that a user calls.

    A torch program has a pair of functions, ``main$async`` and ``main`` that calls it; only the latter is returned.

    Raises:
        UserError: A function takes or returns a tensor with a dynamic dimension.
    """
    functions = functions_of(module)
    ranges, uses = IntegerRanges(module), state_uses(module)
    entries = []
    for name in uncalled(functions):
        function = functions[name]
        if is_public(function):
            arguments = [argument for argument in function.regions[0].blocks[0].arguments if _is_data(argument)]
            declared = _declared_tensors(function)
            inputs = _specs(path, name, "argument", _inputs(arguments, functions, declared))
            returned = enumerate(_outputs(function, functions))
            results = [declared.get(("output", i), type_) if _is_untyped(type_) else type_ for i, type_ in returned]
            outputs = _specs(path, name, "result", results)
            pairs = zip(arguments, inputs, strict=True)
            integers = [Integers(a, _integer_bits(spec), spec.elements == 1) for a, spec in pairs]
            limits, notes = ranges.of(function, integers)
            said = tuple(f"@{name}: {note}" for note in notes)
            entries.append(EntryPoint(name, inputs, outputs, limits, said, *uses[name]))
    return tuple(entries)


def entries_to_run(
    entries: Sequence[EntryPoint], not_run: Mapping[str, str]
) -> tuple[tuple[EntryPoint, ...], dict[str, str]]:
    """Return the functions that are run, and why the others are not, by name.

    A function with tensors that can neither be made nor compared is not run, and neither is one that changes the
    program's state; unless none remains then.
    """
    given = {entry.name: not_run.get(entry.name) or _why_no_values(entry) for entry in entries}
    all_reasons = {entry.name: given[entry.name] or _why_not_timed(entry) for entry in entries}
    reasons = given if all(all_reasons.values()) else all_reasons
    if all(reasons.values()):
        return tuple(entries), {}
    run = tuple(entry for entry in entries if not reasons[entry.name])
    return run, {name: why for name, why in reasons.items() if why}


def stateful(entries: Sequence[EntryPoint]) -> tuple[EntryPoint, ...]:
    """Return the functions that read or change the program's state, and whose inputs and outputs can be made."""
    return tuple(entry for entry in entries if entry.uses_state and not _why_no_values(entry))


def _why_not_timed(entry: EntryPoint) -> str:
    """Return why repeated calls of a function are not alike; empty when they are."""
    names = ", ".join(f"@{name}" for name in entry.writes)
    return f"it changes the program's state ({names}), so that no two calls of it are alike" if names else ""


def _why_no_values(entry: EntryPoint) -> str:
    """Return why values of a function's tensors can neither be made nor compared; empty when they can."""
    for verb, specs in (("takes", entry.inputs), ("returns", entry.outputs)):
        for spec in specs:
            if spec.element_type not in ELEMENT_BYTES:
                return f"it {verb} {spec.element_type}, of which no values can be made or compared"
    return ""


def _integer_bits(spec: TensorSpec) -> int | None:
    """Return the width of a tensor's integers; None for floats and for ``i1``, of which any value will do."""
    width = spec.element_type.removeprefix("i")
    return int(width) if width != spec.element_type and width.isdigit() and width != "1" else None


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
    if type_ is None:
        return _UNUSED
    return TensorSpec((), _PASSED_AS.get(str(type_), str(type_)), by_value=True)


def _inputs(arguments: list[Any], functions: dict[str, Any], declared: dict[tuple[str, int], Any]) -> list[Any]:
    """Return the types of the tensors and scalars to pass; None for an argument of which no value can be made."""
    types = []
    for position, argument in enumerate(arguments):
        type_ = _imported_as(argument, functions)
        if type_ is None and _can_be_made(declared.get(("input", position))):
            type_ = declared["input", position]
        types.append(type_)
    return types


def _can_be_made(type_: Any) -> bool:
    """Say whether values of a declared type can be made."""
    return type_ is not None and dynamic_dim(type_) is None and str(type_.element_type) in ELEMENT_BYTES


def _is_untyped(type_: Any) -> bool:
    return str(type_) == "!hal.buffer_view"


def _is_data(argument: Any) -> bool:
    """Say whether the user gives an argument of a function, as opposed to IREE's fences."""
    return str(argument.type) != "!hal.fence"


def _imported_as(value: Any, functions: dict[str, Any]) -> Any:
    """Return the type of the tensor that an argument is imported as; None when it is never imported."""
    if not _is_untyped(value.type):
        return value.type
    for use in value.uses:
        user = use.owner.operation
        if user.name == "hal.tensor.import":
            return user.results[0].type
        callee = functions.get(callee_of(user) or "")
        if callee is not None:
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


def _declared_tensors(function: Any) -> dict[tuple[str, int], Any]:
    """Return the declared tensor types by role, ``input`` or ``output``, and position; empty without a declaration.

    An argument is a buffer view without a type until it is imported as a tensor, and an argument that its function only
    returns is never imported. Integers have no sign, as in the rest of the program at this phase.

    Args:
        function: A ``util.func`` of a program at the flow phase.
    """
    if _REFLECTION not in function.attributes:
        return {}
    reflection = ir.DictAttr(function.attributes[_REFLECTION])
    if _DECLARATION not in reflection:
        return {}
    text = ir.StringAttr(reflection[_DECLARATION]).value
    return {
        (role, int(position)): ir.Type.parse(_SIGNED.sub(r"\1>", type_))
        for role, position, type_ in _TENSOR.findall(text)
    }


def state_uses(module: Any) -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return which globals of the state every public function, by name, reads and changes, each sorted.

    Those of the functions that it calls count, too. A global whose address is taken may be read and changed.
    """
    functions, state = functions_of(module), changed_globals(module)
    public = [name for name in functions if is_public(functions[name])]
    return {name: _use([each for each in _touched(name, functions) if each[1] in state]) for name in public}


def _use(touched: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    reads, writes = ({symbol for kind, symbol in touched if kind != other} for other in (_STORE, _LOAD))
    return tuple(sorted(reads)), tuple(sorted(writes))


def _touched(name: str, functions: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what a function and those that it calls do with globals: the kind of operation, and the global's name."""
    seen, waiting = {name}, [name]
    while waiting:
        for op in operations_below(functions[waiting.pop()]):
            callee = callee_of(op)
            if callee is not None and callee in functions and callee not in seen:
                seen.add(callee)
                waiting.append(callee)
            if op.name in (_LOAD, _STORE, _ADDRESS):
                yield op.name, global_of(op)
