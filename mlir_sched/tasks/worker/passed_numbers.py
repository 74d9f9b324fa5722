"""The numbers that a program passes to a dispatch: those that differ between its calls stay operands of its code.

IREE makes every number that all calls of a dispatch agree on a part of the dispatch's code, and one operand of several
that are equal in every call (``FoldUniformOperandsPass``). A task's program has a single call, so that what differs
between the calls of the whole program has to be an argument of it: only then is its code that of the program.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from iree.compiler import ir

from mlir_sched.compiler.operations import constant_of
from mlir_sched.tasks.task import Number
from mlir_sched.tasks.worker.call_counts import operations_below, workload_size

Group: TypeAlias = tuple[int, ...]
_HOST_CODE = ("util.func", "util.initializer")


@dataclass(frozen=True)
class PassedNumbers:
    """Numbers that differ between the calls of a dispatch.

    Attributes:
        groups: Per number, the positions of the operands that are this number in every call.
        values: The distinct combinations of values that are passed, in the order of the calls; one value per group.
    """

    groups: tuple[Group, ...] = ()
    values: tuple[tuple[Number, ...], ...] = ()


def dispatches_by_entry(module: Any) -> dict[str, list[Any]]:
    """Return every ``flow.dispatch`` of a program by the text of its entry point, those of initializers included."""
    found: dict[str, list[Any]] = {}
    for op in module.regions[0].blocks[0]:
        if op.operation.name in _HOST_CODE:
            for inner in operations_below(op.operation):
                if inner.name == "flow.dispatch":
                    found.setdefault(str(inner.attributes["entry_points"][0]), []).append(inner)
    return found


def passed_numbers(run: Sequence[Any], everywhere: Sequence[Any]) -> PassedNumbers:
    """Return what differs between the calls of a dispatch; nothing where a call passes numbers known only at run time.

    Args:
        run: The calls that a run of the program makes.
        everywhere: All calls of the dispatch in the program.
    """
    positions = _numbers(everywhere[0])
    columns = {position: tuple(constant_of(call.operands[position]) for call in everywhere) for position in positions}
    if any(each is None for column in columns.values() for each in column):
        return PassedNumbers()
    groups: dict[tuple[Any, ...], list[int]] = {}
    for position, column in columns.items():
        if len(set(column)) > 1:
            groups.setdefault(column, []).append(position)
    if not groups:
        return PassedNumbers()
    firsts = [group[0] for group in groups.values()]
    values = dict.fromkeys(tuple(constant_of(call.operands[position]).value for position in firsts) for call in run)
    return PassedNumbers(tuple(map(tuple, groups.values())), tuple(values))


def _numbers(dispatch: Any) -> list[int]:
    """Return the positions of the operands that are numbers which the code of the dispatch takes."""
    positions = range(workload_size(dispatch), len(dispatch.operands))
    return [position for position in positions if not isinstance(dispatch.operands[position].type, ir.ShapedType)]
