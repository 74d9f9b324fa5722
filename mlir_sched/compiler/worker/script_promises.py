"""What a script for GPUs says of its threads and buffers, where IREE compiles a contradiction without a word.

The numbers of such a program are wrong, in some runs or on some devices only. The checks read the script's own ops,
because the code that they leave no longer tells how many threads or buffers were meant.
"""

from __future__ import annotations

import re
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import walk
from mlir_sched.compiler.worker.shared_writes import workgroup_size

_MAP = "transform.iree.map_nested_forall_to_gpu_threads"
_PIPELINE, _BUFFERS = "transform.iree.pipeline_shared_memory_copies", "transform.memref.multibuffer"


def why_copies_overtake(script: Any) -> str:
    """Return which pipeline copies more steps ahead than there are buffers, or an empty string.

    A copy then overwrites what threads still read.

    Args:
        script: The script's module.
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

    Args:
        script: The script's module.
        function: The function that the script left.
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
