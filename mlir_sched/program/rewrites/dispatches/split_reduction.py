"""Reductions to few results, split into parts (rfactor), so that several cores have work.

IREE distributes the results of a reduction over the cores, never the terms of one result. The rewrite splits one
reduction loop into a few parts: one dispatch reduces every part to a partial result, another dispatch reduces the
partial results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import linalg, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import (
    copied,
    copied_body,
    dims_map,
    expand,
    generic,
    is_static,
    maps_of,
    number,
)
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

MIN_ELEMENTS = 1 << 16
"""Elements to reduce below which a second dispatch, and waking a core, cost more than the other core saves."""
PARTS_PER_CORE = 4
"""Most parts per core; more of them only make the second reduction longer."""
_INFINITY = float("inf")
_NEUTRAL = {
    "arith.addf": -0.0, "arith.mulf": 1.0,
    "arith.maximumf": -_INFINITY, "arith.minimumf": _INFINITY, "arith.maxnumf": -_INFINITY, "arith.minnumf": _INFINITY,
}  # fmt: skip
"""Neutral element of each combining op (except for ``maxnumf`` and ``minnumf`` of nothing but NaNs)."""


@dataclass(frozen=True)
class SplitSite(OpSite):
    """One reduction of a program.

    Attributes:
        op: The linalg op; its last operand is the init.
        loop: The reduction loop that is split.
        parts: Number of parts; it divides the loop's trip count.
        combiner: The op that combines the result so far with one more element.
    """

    loop: int
    parts: int
    combiner: Any

    @property
    def maps(self) -> list[ir.AffineMap]:
        """The indexing maps."""
        return maps_of(self.op)


@dataclass(frozen=True)
class SplitReduction(OpRewrite[SplitSite]):
    """Splits the reductions that have fewer results than there are cores.

    Attributes:
        cores: Cores that the program will run on; nothing is split for one.
    """

    name = "split_reduction"
    cores: int

    def sites(self, program: WalkedProgram) -> list[SplitSite]:
        """Return the reductions that leave cores without work."""
        return [site for op in program.ops if (site := split_site(op, self.cores)) is not None]

    def compute(self, site: SplitSite, *inputs: Any) -> Any:
        """Return the reduction of the parts' partial results."""
        *read, init = inputs
        partial = _parts(site, read, init)
        loops = init.type.rank + 1
        maps = [ir.AffineMap.get_identity(loops), dims_map(loops, range(1, loops))]
        kinds = ["reduction", *["parallel"] * (loops - 1)]
        return generic([partial], init, maps, kinds, lambda *pair: copied(site.combiner, pair).result)


def split_site(op: Any, cores: int) -> SplitSite | None:
    """Return how an op is split for ``cores`` cores; None when it needs no split or its form is not supported."""
    if cores == 1 or not op.name.startswith("linalg.") or len(op.results) != 1 or not all(map(_static, op.operands)):
        return None
    maps = maps_of(op)
    if not maps or not all(map_.is_projected_permutation for map_ in maps):
        return None
    elements = max(prod(operand.type.shape) for operand in op.operands)
    if prod(op.result.type.shape) >= cores or elements < MIN_ELEMENTS or (combiner := _combiner(op)) is None:
        return None
    kept = _dims(maps[-1])
    extents = {
        d: size for value, m in zip(op.operands, maps, strict=True)
        for d, size in zip(_dims(m), value.type.shape, strict=True)
    }  # fmt: skip
    for loop in (loop for m in maps for loop in _dims(m) if loop not in kept):
        parts = [p for p in range(cores, PARTS_PER_CORE * cores + 1) if extents[loop] % p == 0]
        if parts:
            return SplitSite(op, loop, parts[0], combiner)
    return None


def _parts(site: SplitSite, inputs: Sequence[Any], init: Any) -> Any:
    """Return the partial results. Dims: parts, then the dims of the result."""
    *read, written = site.maps
    loops = written.n_dims + 1
    kept = _dims(written)
    element = init.type.element_type
    neutral = number(element, _NEUTRAL[site.combiner.name])
    start = linalg.fill(neutral, outs=[tensor.empty([site.parts, *init.type.shape], element)])
    of_inputs = [[d for dim in _dims(m) for d in ([0, dim + 1] if dim == site.loop else [dim + 1])] for m in read]
    maps = [dims_map(loops, dims) for dims in [*of_inputs, [0, *(dim + 1 for dim in kept)]]]
    kinds = ["parallel", *("parallel" if loop in kept else "reduction" for loop in range(loops - 1))]
    split = [_split(value, _dims(m), site) for value, m in zip(inputs, read, strict=True)]
    return generic(split, start, maps, kinds, lambda *scalars: copied_body(site.op, scalars))


def _split(value: Any, dims: list[int], site: SplitSite) -> Any:
    """Return an input with the dim of the split loop divided into two: the part, and the place in the part."""
    if site.loop not in dims:
        return value
    at = dims.index(site.loop)
    shape = list(value.type.shape)
    groups = [[d] if d < at else [d, d + 1] if d == at else [d + 1] for d in range(len(shape))]
    return expand(value, groups, [*shape[:at], site.parts, shape[at] // site.parts, *shape[at + 1 :]])


def _combiner(op: Any) -> Any:
    """Return the op that combines the result so far with one more element, if it is one op of ``_NEUTRAL``."""
    block = op.regions[0].blocks[0]
    inside = {inner.operation for inner in block}
    so_far = block.arguments[len(op.operands) - 1]
    end = list(block)[-1].operation
    combiner = producer(end.operands[0]) if len(end.operands) == 1 else None
    users = [use.owner.operation for use in so_far.uses]
    if combiner is None or combiner.name not in _NEUTRAL or users != [combiner] or combiner not in inside:
        return None
    own = all(producer(v) is None or producer(v) in inside for inner in inside for v in inner.operands)
    return combiner if own and not any("index" in inner.name or inner.regions for inner in inside) else None


def _static(value: Any) -> bool:
    return is_static(value) and isinstance(value.type.element_type, ir.FloatType)


def _dims(map_: ir.AffineMap) -> list[int]:
    return [ir.AffineDimExpr(expr).position for expr in map_.results]
