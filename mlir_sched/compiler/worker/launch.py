"""Reads from a compiled executable how a device launches a dispatch."""

from __future__ import annotations

import re
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.result import Launch

_EXPORT, _RETURN = "hal.executable.export", "hal.return"


def launch_of(module: Any) -> Launch | None:
    """Return the launch of a program's only dispatch after translation (``executable-targets``).

    Returns:
        None if the target has no threads, or if the number of workgroups depends on values of the program.
    """
    for op in walk(module):
        if op.name == _EXPORT and "workgroup_size" in op.attributes:
            counts = [count for each in walk(op) if each.name == _RETURN for count in map(_constant, each.operands)]
            known = [count for count in counts if count is not None]
            if len(known) < len(counts):
                return None
            columns, rows, layers = known
            x, y, z = (int(ir.IntegerAttr(size).value) for size in ir.ArrayAttr(op.attributes["workgroup_size"]))
            shared = re.search(r"workgroup_local_memory = (\d+)", str(op).rpartition("<")[2])
            return Launch((columns, rows, layers), (x, y, z), int(shared.group(1)) if shared else 0)
    return None


def _constant(value: Any) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return int(ir.IntegerAttr(owner.attributes["value"]).value)
