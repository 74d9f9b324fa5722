"""Adds a chain to a task's program at the executable-sources phase (see ``compiler/chain.py``).

The host's code is a function with one ``stream.cmd.execute``, whose region has one ``stream.cmd.dispatch``. The ops of
such a region run one after the other.
"""

from __future__ import annotations

from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith

from mlir_sched.compiler.chain import ENTRY, TASK, Chain, stride_bytes
from mlir_sched.compiler.operations import producer, symbol_of

ASSERT, DISPATCH, EXECUTE, IMPORT = (
    "hal.buffer_view.assert",
    "stream.cmd.dispatch",
    "stream.cmd.execute",
    "stream.tensor.import",
)
BODY = (DISPATCH, "stream.yield")


def add_chain(module: Any, chain: Chain) -> None:
    """Add the function to a program; one that does more than a single dispatch, such as a copy before it, gets none."""
    functions = [op.operation for op in module.regions[0].blocks[0] if op.operation.name == "util.func"]
    (task,) = (function for function in functions if symbol_of(function) == TASK)
    if not _makes_one_dispatch(task):
        return
    with ir.InsertionPoint(task):
        made = task.clone()
    made.attributes["sym_name"] = ir.StringAttr.get(ENTRY)
    (execute,), arguments = _executes(made), made.regions[0].blocks[0].arguments
    widened = dict(_widened(execute, arguments[position], chain.length) for position in chain.constants)
    dispatch, end = (op.operation for op in execute.regions[0].blocks[0])
    with ir.InsertionPoint(end):
        further = [dispatch.clone() for _ in range(1, chain.length)]
    with ir.InsertionPoint(execute):  # the region holds no constants
        for number, each in enumerate((dispatch, *further)):
            _read_copy(each, number, widened)


def _makes_one_dispatch(function: Any) -> bool:
    """Say whether all that a function has a device do is one dispatch, on arguments that are imported once each."""
    executes = _executes(function)
    bodies = [tuple(op.operation.name for op in execute.regions[0].blocks[0]) for execute in executes]
    buffers = [each for each in function.regions[0].blocks[0].arguments if str(each.type) == "!hal.buffer_view"]
    users = [[use.owner.operation.name for use in each.uses] for each in buffers]
    return bodies == [BODY] and all(names.count(IMPORT) == 1 for names in users)


def _executes(function: Any) -> list[Any]:
    """Return the ``stream.cmd.execute`` ops of a function."""
    return [op.operation for op in function.regions[0].blocks[0] if op.operation.name == EXECUTE]


def _widened(execute: Any, argument: Any, length: int) -> tuple[int, tuple[int, Any]]:
    """Make a function's argument a buffer with a copy of the constant for each of ``length`` dispatches.

    Returns:
        The number of the region's argument for it, and the bytes from one copy to the next with those of all copies.
    """
    users = [use.owner.operation for use in argument.uses]
    (imported,) = (user for user in users if user.name == IMPORT)
    step = stride_bytes(_index(imported.operands[1]))
    with ir.InsertionPoint(imported):
        size = _constant(length * step)
    whole = ir.RankedTensorType.get([length * step], ir.IntegerType.get_signless(8))
    imported.attributes["result_encoding"] = ir.TypeAttr.get(whole)
    imported.operands[1] = size
    for user in users:
        if user.name == ASSERT:
            user.erase()
    resources = ir.DenseI32ArrayAttr(execute.attributes["operandSegmentSizes"])[0]
    (number,) = (n for n in range(resources) if execute.operands[n] == imported.result)
    execute.operands[resources + number] = size
    return number, (step, size)


def _read_copy(dispatch: Any, number: int, widened: dict[int, tuple[int, Any]]) -> None:
    """Have a dispatch read copy ``number`` of every constant; offsets are made at the current insertion point."""
    workload, uniform, count, *_ = ir.DenseI32ArrayAttr(dispatch.attributes["operandSegmentSizes"])
    first = workload + uniform
    for place in range(first, first + count):
        argument = ir.BlockArgument(dispatch.operands[place]).arg_number
        if argument in widened:
            step, size = widened[argument]
            offset = place + 2 * count
            dispatch.operands[offset] = _constant(_index(dispatch.operands[offset]) + number * step)
            dispatch.operands[place + count] = size


def _constant(value: int) -> Any:
    return arith.constant(ir.IndexType.get(), value)


def _index(value: Any) -> int:
    return int(ir.IntegerAttr(producer(value).attributes["value"]).value)
