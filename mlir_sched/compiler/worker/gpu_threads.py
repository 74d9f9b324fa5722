"""What is wrong with the threads of a script for GPUs, where IREE compiles a mistake without a word.

The numbers of such a program are wrong, in some runs or on some devices only. Most checks read the IR that the script
leaves; those of mapped threads and of buffers read the script's own ops, as the code that these leave no longer tells
how many were meant.
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
_SUBSPAN = "hal.interface.binding.subspan"
_LOADS = ("memref.load", "vector.load", "vector.transfer_read")
_STORES = ("memref.store", "vector.store", "vector.transfer_write")
Place = tuple[frozenset[str], ...]
"""The dimensions of the thread ids that each index of an access depends on."""
_MAP = "transform.iree.map_nested_forall_to_gpu_threads"
_PIPELINE, _BUFFERS = "transform.iree.pipeline_shared_memory_copies", "transform.memref.multibuffer"


def why_threads_collide(function: Any) -> str:
    """Return which write of a workgroup buffer several threads make at the same place, or an empty string.

    IREE's bufferization puts every temporary of a script into workgroup memory. A temporary that is meant to be private
    to a thread is then one buffer that all threads write, at the same places.

    A write has a place of its own per thread where its indices, its view of the buffer, or the conditions and loops
    around it depend on the ids of the threads along every dimension in which the workgroup has more than one. That
    different ids give different places is not proven.
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

    ``known`` has the dimensions of numbers that were asked for before, and gets those of this number.
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


def why_threads_mix_results(function: Any) -> str:
    """Return which read of a result depends on the ids of threads in another way than its writes, or an empty string.

    Threads do not wait for one another's writes of device memory. Where fill and product, say, are mapped to threads in
    different ways, the product starts from what a neighbour may not have written yet.

    Only accesses of the whole buffer are compared, not those of its views. That equal dependences are equal places is
    not proven.
    """
    if not any(threads > 1 for threads in workgroup_size(function)):
        return ""
    known: dict[Any, frozenset[str]] = {}
    for op in walk(function):
        if op.name != _SUBSPAN:
            continue
        users = [use.owner.operation for use in op.results[0].uses]
        written = {_place(user, known) for user in users if user.name in _STORES}
        read = {_place(user, known) for user in users if user.name in _LOADS}
        for place in read:
            if others := written - {place}:
                return f"threads read results at {_shown(place)} that others write at {_shown(others.pop())}"
    return ""


def _place(op: Any, known: dict[Any, frozenset[str]]) -> Place:
    return tuple(thread_ids(value, known) for value in op.operands if isinstance(value.type, ir.IndexType))


def _shown(place: Place) -> str:
    return f"[{', '.join('+'.join(sorted(ids)) or '-' for ids in place)}]"


def why_copies_overtake(script: Any) -> str:
    """Return which pipeline copies more steps ahead than there are buffers, or an empty string.

    A copy then overwrites what threads still read.
    """
    ops = list(walk(script))
    depths = [_number(op, "depth") for op in ops if op.name == _PIPELINE]
    buffers = min((_number(op, "factor") for op in ops if op.name == _BUFFERS), default=1)
    if depths and max(depths) > buffers:
        return f"copies run {max(depths)} steps deep through {buffers} buffers: they overwrite what is still read"
    return ""


def why_threads_differ(script: Any, function: Any) -> str:
    """Return how the workgroup of the code differs from the one whose threads were mapped, or an empty string.

    Threads that were mapped and are not launched leave their results out.
    """
    found = workgroup_size(function)
    for op in walk(script):
        if op.name == _MAP and "workgroup_dims" in op.attributes:
            sizes = str(op.attributes["workgroup_dims"]).partition(":")[2]
            mapped = (*map(int, re.findall(r"-?\d+", sizes)), 1, 1)[:3]
            if mapped != found:
                return f"the script maps the threads of a workgroup of {mapped} and launches {found or 'another'}"
    return ""


def _number(op: Any, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)
