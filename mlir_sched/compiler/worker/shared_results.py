"""The check that no thread reads a place of device memory that another thread of its workgroup has just written.

Threads do not wait for one another's writes of device memory. A script whose fill and product are mapped to threads in
different ways compiles; the product then starts from what a neighbour may not have written yet.
"""

from __future__ import annotations

from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.worker.shared_writes import thread_ids, workgroup_size

_SUBSPAN = "hal.interface.binding.subspan"
_LOADS = ("memref.load", "vector.load", "vector.transfer_read")
_STORES = ("memref.store", "vector.store", "vector.transfer_write")
Place = tuple[frozenset[str], ...]
"""The dimensions of the thread ids that each index of an access depends on."""


def why_threads_mix_results(function: Any) -> str:
    """Return which read of a result depends on the ids of threads in another way than its writes, or an empty string.

    Only accesses of the whole buffer are compared, not those of its views. That equal dependences are equal places is
    not proven.

    Args:
        function: The function that a script left, mapped to threads.
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
