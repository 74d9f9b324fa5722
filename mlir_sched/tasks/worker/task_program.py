"""One dispatch of a model as a stand-alone program.

The program's entry ``task`` takes the dispatch's tensors, the numbers that differ between the dispatch's calls, and one
buffer per result, into which it writes the results::

    %0 = hal.tensor.import %arg0 ...            (one per tensor)
    %1 = flow.dispatch @dispatch::@dispatch(%0, %number0) : ...
    %2 = hal.tensor.alias %1 ... to %out0       (one per result)
    util.return (hal.tensor.export %2 ...)

A tensor that the dispatch updates in place is first copied into the result's buffer, by an alias before the dispatch
instead of after it, so that the caller's tensor keeps its values. (IREE drops a ``flow.tensor.clone`` in this place.)
Every such program uses the same names, so that equal dispatches give equal programs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.chain import TASK
from mlir_sched.compiler.operations import constant_of, symbol_of
from mlir_sched.payload import TensorSpec
from mlir_sched.tasks.worker.analysis import NotTunableError, tensor_spec
from mlir_sched.tasks.worker.call_counts import tensor_operands, tied_operands, workload_size

SYMBOL = "dispatch"
"""Name of the executable, of its export and of its function."""
_VIEW = "!hal.buffer_view"
_PASSED = ("f32", "f64", "i32", "i64")
"""Types of numbers that functions take as they are, in IREE's virtual machine."""
_RESOURCES = "\n{-#"
"""Start of the section of an MLIR file that holds the elements of ``dense_resource`` attributes."""


@dataclass(frozen=True)
class TaskProgram:
    """A stand-alone program at the flow phase.

    Attributes:
        inputs: Tensors that the program takes, then numbers.
        outputs: Tensors that the program makes, each in a buffer that is passed after the inputs.
    """

    text: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class Surroundings:
    """What the programs of a module's dispatches take over from the module.

    Attributes:
        attributes: The attributes of the module but its name.
        shared: The devices, which all programs have.
        executables: The executables by symbol.
    """

    attributes: Mapping[str, Any]
    shared: tuple[Any, ...]
    executables: Mapping[str, Any]

    @staticmethod
    def of(module: Any) -> Surroundings:
        """Return the surroundings of the dispatches in a module at the flow phase."""
        operations = [op.operation for op in module.regions[0].blocks[0]]
        return Surroundings(
            {name: module.attributes[name] for name in module.attributes if name != "sym_name"},
            tuple(op for op in operations if op.name == "util.global" and "!hal.device" in str(op.attributes["type"])),
            {symbol_of(op): op for op in operations if op.name == "flow.executable"},
        )


def build_task_program(around: Surroundings, dispatch: Any, numbers: Sequence[Sequence[int]] = ()) -> TaskProgram:
    """Return the program of one ``flow.dispatch`` of a module at the flow phase.

    Args:
        around: The surroundings of the module's dispatches.
        numbers: Per number that the program takes, the positions of the operands that are this number.

    Raises:
        NotTunableError: The dispatch takes values that are neither tensors nor constants, or has dynamic shapes.
    """
    workload = workload_size(dispatch)
    operands = list(dispatch.operands)
    tensors = tuple(tensor_spec(value.type) for value in tensor_operands(dispatch))
    taken = [operands[group[0]].type for group in numbers]
    outputs = tuple(tensor_spec(value.type) for value in dispatch.results)
    lines = _body(dispatch, operands, workload, {position: i for i, group in enumerate(numbers) for position in group})
    parameters = [f"%arg{i}: {_VIEW}" for i in range(len(tensors))]
    parameters += [f"%number{i}: {_passed_as(type_)}" for i, type_ in enumerate(taken)]
    parameters += [f"%out{i}: {_VIEW}" for i in range(len(outputs))]
    function = "\n".join(
        [
            f"  util.func public @{TASK}({', '.join(parameters)}) -> "
            f"({', '.join([_VIEW] * len(outputs))}) attributes {{iree.abi.stub}} {{",
            *(f"    {line}" for line in lines),
            "  }",
        ]
    )
    inputs = (*tensors, *(TensorSpec((), _passed_as(type_), by_value=True) for type_ in taken))
    return TaskProgram(_with_function(str(_frame(around, dispatch)), function), inputs, outputs)


def _with_function(module: str, function: str) -> str:
    """Return the text of a module with a function added at its end; resources, if any, follow the module."""
    body, opening, resources = module.rstrip().partition(_RESOURCES)
    return f"{body.rstrip().removesuffix('}')}{function}\n}}\n{opening}{resources}"


def _passed_as(type_: Any) -> str:
    """Return the type in which a number is passed to a program.

    Raises:
        NotTunableError: The number has a type that is not passed.
    """
    name = str(type_)
    if name not in _PASSED:
        raise NotTunableError(f"it takes numbers of type {name} that differ between its calls")
    return name


def _body(dispatch: Any, operands: list[Any], workload: int, numbers: Mapping[int, int]) -> list[str]:
    names = [f"%v{position}" for position in range(len(operands))]
    tied = _tied_operands(dispatch)
    names = [f"%number{numbers[position]}" if position in numbers else name for position, name in enumerate(names)]
    lines = _operand_lines(operands, tied, numbers)
    lines.append(_dispatch_line(dispatch, names, workload, tied))
    for i, value in enumerate(dispatch.results):
        result = f"%r{i}"
        if tied[i] < 0:
            lines.append(f"%a{i} = hal.tensor.alias {result} : {value.type} to %out{i} : !hal.buffer_view")
            result = f"%a{i}"
        lines.append(f'%e{i} = hal.tensor.export {result} "output{i}" : {value.type} -> {_VIEW}')
    count = len(dispatch.results)
    exported = ", ".join(f"%e{i}" for i in range(count))
    return [*lines, f"util.return {exported} : {', '.join([_VIEW] * count)}"]


def _operand_lines(operands: list[Any], tied: list[int], numbers: Collection[int]) -> list[str]:
    """Return the ops that make the operands; an operand updated in place is first copied into its result's buffer.

    The numbers that the program takes, given by their positions, need none.
    """
    lines: list[str] = []
    imported = 0
    for position, value in enumerate(operands):
        if position in numbers:
            continue
        if not isinstance(value.type, ir.ShapedType):
            lines.append(f"%v{position} = arith.constant {_constant(value)}")
            continue
        name = f"%i{position}" if position in tied else f"%v{position}"
        lines.append(f'{name} = hal.tensor.import %arg{imported} "input{imported}" : !hal.buffer_view -> {value.type}')
        if position in tied:
            storage = f"%out{tied.index(position)}"
            lines.append(f"%v{position} = hal.tensor.alias {name} : {value.type} to {storage} : !hal.buffer_view")
        imported += 1
    return lines


def _dispatch_line(dispatch: Any, names: list[str], workload: int, tied: list[int]) -> str:
    results = ", ".join(f"%r{i}" for i in range(len(dispatch.results)))
    types = [str(value.type) if tied[i] < 0 else names[tied[i]] for i, value in enumerate(dispatch.results)]
    arguments = [str(value.type) for value in list(dispatch.operands)[workload:]]
    sizes = f"[{', '.join(names[:workload])}]" if workload else ""
    returned = types[0] if len(types) == 1 else f"({', '.join(types)})"
    return (
        f"{results} = flow.dispatch @{SYMBOL}::@{SYMBOL}{sizes}({', '.join(names[workload:])}) : "
        f"({', '.join(arguments)}) -> {returned}"
    )


def _tied_operands(dispatch: Any) -> list[int]:
    """Return for each result the position of the operand that it overwrites, or -1."""
    workload = workload_size(dispatch)
    tied = [position + workload if position >= 0 else -1 for position in tied_operands(dispatch)]
    for position, result in zip(tied, dispatch.results, strict=True):
        if position >= 0 and dispatch.operands[position].type != result.type:
            raise NotTunableError(f"it updates a tensor in place that it returns as {result.type}")
    return tied


def _constant(value: Any) -> str:
    attribute = constant_of(value)
    if attribute is None:
        raise NotTunableError(f"it takes a value of type {value.type} that is computed at run time")
    return str(attribute)


def _frame(around: Surroundings, dispatch: Any) -> Any:
    """Return a module with the devices and the one executable that the dispatch calls."""
    executable_name, export_name = ir.SymbolRefAttr(dispatch.attributes["entry_points"][0]).value
    frame = ir.Module.create()
    for name, attribute in around.attributes.items():
        frame.operation.attributes[name] = attribute
    with ir.InsertionPoint(frame.body):
        for device in around.shared:
            device.clone()
        _rename(around.executables[executable_name].clone(), export_name)
    return frame


def _rename(executable: Any, export_name: str) -> None:
    """Give an executable, its export and the exported function the fixed name."""
    exports = [op.operation for op in executable.regions[0].blocks[0] if op.operation.name == "flow.executable.export"]
    if len(exports) != 1 or symbol_of(exports[0]) != export_name:
        raise NotTunableError(f"its executable has {len(exports)} exports")
    function_name = ir.FlatSymbolRefAttr(exports[0].attributes["function_ref"]).value
    for op in executable.regions[0].blocks[0]:
        if op.operation.name == "builtin.module":
            for function in op.operation.regions[0].blocks[0]:
                if "sym_name" in function.operation.attributes and symbol_of(function.operation) == function_name:
                    function.operation.attributes["sym_name"] = ir.StringAttr.get(SYMBOL)
    executable.attributes["sym_name"] = ir.StringAttr.get(SYMBOL)
    exports[0].attributes["sym_name"] = ir.StringAttr.get(SYMBOL)
    exports[0].attributes["function_ref"] = ir.FlatSymbolRefAttr.get(SYMBOL)
