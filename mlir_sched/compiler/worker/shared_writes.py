"""The check that threads of a workgroup do not overwrite one another's values in the memory that they share.

On GPUs IREE's bufferization puts every temporary of a script into workgroup memory. A temporary that is meant to be
private to a thread is then one buffer that all threads write, at the same places: the code compiles, and its numbers
are wrong on some devices and in some runs. The check reads the IR that the script leaves.
"""

from __future__ import annotations

import math
import re
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer, walk

_WORKGROUP = "#gpu.address_space<workgroup>"
_SIZE = re.compile(r"workgroup_size = \[([\d, ]+)\]")
_DIMENSIONS = "xyz"
_READS = ("memref.load", "vector.load", "vector.transfer_read", "memref.dealloc", "memref.dim", "nvgpu.ldmatrix")


def why_threads_collide(function: Any) -> str:
    """Return which write of a workgroup buffer several threads make at the same place, or an empty string.

    A write has a place of its own per thread where its indices, its view of the buffer, or the conditions and loops
    around it depend on the ids of the threads along every dimension in which the workgroup has more than one. That
    different ids give different places is not proven.

    Args:
        function: The function that a script left, mapped to threads.
    """
    size = workgroup_size(function)
    needed = {name for name, threads in zip(_DIMENSIONS, size, strict=False) if threads > 1}
    if not needed:
        return ""
    known: dict[Any, frozenset[str]] = {}
    for op in walk(function):
        if op.name in ("memref.alloc", "memref.alloca") and _WORKGROUP in str(op.results[0].type):
            for write, ids in _writes(op.results[0], frozenset(), known):
                if missing := sorted(needed - ids):
                    what = f"{write.name} into {op.results[0].type} along {', '.join(missing)}"
                    return f"{math.prod(size)} threads write the same places of a workgroup buffer: {what}"
    return ""


def workgroup_size(function: Any) -> tuple[int, ...]:
    """Return the threads of a workgroup along x, y and z that a function's attributes name; empty when none do."""
    attributes = function.attributes
    found = _SIZE.search(str(attributes["translation_info"])) if "translation_info" in attributes else None
    return tuple(map(int, found.group(1).split(","))) if found else ()


def _writes(buffer: Any, ids: frozenset[str], known: dict[Any, frozenset[str]]) -> list[tuple[Any, frozenset[str]]]:
    """Return the ops that write a buffer, or a view of it, each with the thread ids that its place depends on."""
    found = []
    for use in buffer.uses:
        op, at = use.owner.operation, use.operand_number
        if op.name in _READS or (op.name == "memref.copy" and at == 0):
            continue
        # The first operand is the buffer of a view, or the value that is stored, which says nothing about the place.
        others = [value for i, value in enumerate(op.operands) if i not in (0, at)]
        places = ids.union(*(thread_ids(value, known) for value in others), _around(op, known))
        views = [result for result in op.results if isinstance(result.type, (ir.MemRefType, ir.UnrankedMemRefType))]
        for view in views:
            found += _writes(view, places, known)
        if not views:
            found.append((op, places))
    return found


def _around(op: Any, known: dict[Any, frozenset[str]]) -> frozenset[str]:
    """Return the thread ids that the loops and conditions around an op depend on."""
    parent = op.parent
    if parent is None or parent.name == "func.func":
        return frozenset()
    ids = (thread_ids(value, known) for value in parent.operands if _is_place(value))
    return frozenset().union(*ids, _around(parent, known))


def thread_ids(value: Any, known: dict[Any, frozenset[str]]) -> frozenset[str]:
    """Return the dimensions of the thread ids that a number depends on: letters of ``xyz``.

    Args:
        value: The number.
        known: The dimensions of numbers that were asked for before; gets those of this number.
    """
    if value in known:
        return known[value]
    known[value] = frozenset()
    op = producer(value)
    if op is not None and op.name == "gpu.thread_id":
        known[value] = frozenset(str(op.attributes["dimension"])[-2:-1])
    else:
        operands = (value.owner.owner.operation if op is None else op).operands
        known[value] = frozenset().union(*(thread_ids(operand, known) for operand in operands if _is_place(operand)))
    return known[value]


def _is_place(value: Any) -> bool:
    return isinstance(value.type, (ir.IndexType, ir.IntegerType))
