"""Workgroups of templates: few, of equal size, for all cores."""

import math
from collections.abc import Iterator, Mapping

from mlir_sched.payload import Dispatch
from mlir_sched.sampling import Value, divisors
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import vector_elements, vector_multiple
from mlir_sched.transform_scripts.structures import Loop, Loops

MAX_SHARES = 4
"""Most workgroups per core: more of them only make the load more even."""


def equal_shares(dispatch: Dispatch, loops: Loops, target: Target, *, along: int | None = None) -> dict[Loop, int]:
    """Return the size of a workgroup along each loop of a root: such that cores have nothing to do for the least time.

    Of divisions that are as good, the one into fewest workgroups is taken, and of these the one of the outermost loops.

    Args:
        along: Position of a loop that vectors lie along. This loop and the contiguous loop of the result keep whole
            vectors.
    """
    root, lanes = dispatch.root, max(vector_elements(op, target) for op in dispatch.ops)
    most, divisions = MAX_SHARES * target.cores, {1: tuple[int, ...]()}
    for loop in loops:
        whole = lanes if loop.position(root) in (along, root.contiguous_dim) else 1
        further = dict[int, tuple[int, ...]]()
        for total, division in divisions.items():
            for count in _counts(loop.extent, whole, most // total):
                made = (*division, count)
                further[total * count] = max(made, further.get(total * count, made))
        divisions = further
    best = min(divisions, key=lambda total: (math.ceil(total / target.cores) / total, total))
    return {loop: loop.extent // count for loop, count in zip(loops, divisions[best], strict=True)}


def _counts(extent: int, lanes: int, most: int) -> Iterator[int]:
    """Yield into how many equal parts a loop may be divided: whole vectors, as far as these divide it, at least one."""
    for count in divisors(extent // vector_multiple(extent, lanes)):
        if count == 1 or (count <= most and extent // count >= lanes):
            yield count


def workgroup_values(shares: Mapping[Loop, int]) -> dict[str, Value]:
    """Return the sizes of a workgroup as values of the decisions that the module for distribution draws."""
    return {f"workgroup_{loop.name}": (size,) for loop, size in shares.items() if loop.extent > 1}
