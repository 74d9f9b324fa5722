"""Contractions on CPUs: matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.

Two programs span the space. ``registers`` keeps a register tile of the result while the whole reduction runs, and
computes fill and epilogues in the same tile. ``cache`` also tiles the reduction for the caches, so the result is
written once per reduction block; fill and epilogues then work on a whole workgroup tile.

Source: the loop structure is Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008); the
rules below each name what was measured in IREE 3.13 on Zen 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir_sched.transform_scripts.common import contraction as common
from mlir_sched.transform_scripts.common.clean_up import clean_up, vectorize_peeled
from mlir_sched.transform_scripts.common.contraction import (
    CONTRACT_PATTERNS,
    MAX_REDUCTION_STEP,
    Nest,
    Program,
    Roles,
    check_unrolled,
    loops_of_root,
    tile_by_one,
    tile_reduction,
)
from mlir_sched.transform_scripts.common.extents import element_bytes, sizes_for, vector_elements, vector_multiple
from mlir_sched.transform_scripts.schedule import Loop, Schedule, product

MAX_ROWS = 16
MAX_VECTORS_PER_ROW = 8
MAX_UNROLLED_VECTORS = 512
"""Multiply-add vector instructions in one unrolled tile; more only costs compile time and instruction cache."""
MASK_PATTERNS = ("vector.lower_masked_transfers",)
"""Makes reads and writes carry their masks: bufferization takes no ``vector.mask`` around a write (IREE 3.13)."""


class Contraction(common.Contraction):
    """Tiles a contraction with its fill and element-wise epilogues for caches and registers.

    Args:
        names: The programs to span.
        cache_levels: Draw tiles for the caches between those of a workgroup and of the registers.
        edges: Ways to treat an extent that a good register tile does not divide; ``divisor`` is always there.
    """

    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def __init__(
        self,
        names: tuple[str, ...] = ("registers", "cache"),
        cache_levels: bool = True,
        edges: tuple[str, ...] = ("peel", "mask"),
    ) -> None:
        self.names = names
        self.ways = Ways(cache_levels, edges)

    def programs(self) -> Mapping[str, Program]:
        """Return the programs by name."""
        programs = {"registers": registers, "cache": cache}
        return {name: lambda s, nest, run=programs[name]: run(s, nest, self.ways) for name in self.names}  # type: ignore[misc]


@dataclass(frozen=True)
class Ways:
    """What the programs may draw; see :class:`Contraction`."""

    cache_levels: bool
    edges: tuple[str, ...]


@dataclass(frozen=True)
class RegisterTile:
    """Sampled sizes of a contraction's loops (of the contraction); rows is 1 when there is no rows loop."""

    cache_rows: int
    rows: int
    cache_columns: int
    columns: int
    edges: str

    def cache_sizes(self, roles: Roles) -> dict[str, dict[int, int]]:
        """Return the cache tile of each named loop."""
        sizes = {"columns": {roles.columns: self.cache_columns}}
        return sizes if roles.rows is None else {"rows": {roles.rows: self.cache_rows}} | sizes

    def register_sizes(self, roles: Roles) -> dict[str, dict[int, int]]:
        """Return the register tile of each named loop."""
        sizes = {"columns": {roles.columns: self.columns}}
        return sizes if roles.rows is None else {"rows": {roles.rows: self.rows}} | sizes


def registers(s: Schedule, nest: Nest, ways: Ways) -> None:
    """Tile the root for registers, compute everything else inside its tile, run the whole reduction there.

    After: ``for rows_c, columns_c: for rows_r, columns_r: { fill; for k step kr: contract; epilogues }``.
    """
    roles = nest.roles
    tile = _sample_register_tile(s, nest, ways)
    names = tuple(tile.cache_sizes(roles))
    order = s.sample_permutation("cache_order", names) if ways.cache_levels else ()
    register_order = s.sample_permutation("register_order", names)
    (step,) = s.sample_perfect_tile(
        "reduction_step", s.ops[nest.contraction].tile[roles.reduction], 1, max_innermost=MAX_REDUCTION_STEP
    )
    check_unrolled(s, nest, tile.rows, tile.columns, step, MAX_UNROLLED_VECTORS)
    root_index = nest.epilogues[-1] if nest.epilogues else nest.contraction
    to_root = loops_of_root(s, nest, root_index)
    descent = [{d: 1} for d in roles.others]
    descent += [tile.cache_sizes(roles)[name] for name in order]
    descent += [tile.register_sizes(roles)[name] for name in register_order]
    loops: list[Loop] = []
    for sizes in descent:
        root = s.ops[root_index]
        _, made = s.fuse_producers(root, sizes_for(root.op, {to_root[loop]: size for loop, size in sizes.items()}))
        loops.extend(made)
    clean_up(s)
    s.rematch()
    tile_reduction(s, nest, step)
    _vectorize(s, nest, tile, loops)


def cache(s: Schedule, nest: Nest, ways: Ways) -> None:
    """Tile the contraction for caches, reduction included, then for registers; fill and epilogues stand beside it.

    After: ``fill; for k_c, rows_c, columns_c (any order): for rows_r, columns_r: for k step kr: contract; epilogues``.
    """
    roles = nest.roles
    if nest.epilogues:
        _check_temporary(s, nest)
    tile = _sample_register_tile(s, nest, ways)
    reduction_extent = s.ops[nest.contraction].tile[roles.reduction]
    levels_drawn = 2 if ways.cache_levels else 1
    *blocks, step = s.sample_perfect_tile("reduction", reduction_extent, levels_drawn, max_innermost=MAX_REDUCTION_STEP)
    block = blocks[0] if blocks else reduction_extent
    s.require(
        block < reduction_extent or not nest.epilogues or not ways.cache_levels,
        "an unblocked reduction is the registers program",
    )
    check_unrolled(s, nest, tile.rows, tile.columns, step, MAX_UNROLLED_VECTORS)
    levels = tile.cache_sizes(roles)
    order = s.sample_permutation("cache_order", ("reduction", *levels)) if ways.cache_levels else ()
    register_order = s.sample_permutation("register_order", tuple(levels))
    contraction, _ = tile_by_one(s, s.ops[nest.contraction], roles.others)
    levels["reduction"] = {roles.reduction: block}
    loops: tuple[Loop, ...] = ()
    for name in order:
        contraction, _ = s.tile(contraction, sizes_for(contraction.op, levels[name]))
    for name in register_order:
        contraction, made = s.tile(contraction, sizes_for(contraction.op, tile.register_sizes(roles)[name]))
        loops = (*loops, *made)
    tile_reduction(s, nest, step)
    for index in (nest.fill, *nest.epilogues):
        if index is not None:
            loops = (*loops, *_tile_beside(s, nest, index, tile))
    _vectorize(s, nest, tile, loops)


def _sample_register_tile(s: Schedule, nest: Nest, ways: Ways) -> RegisterTile:
    op, roles = s.ops[nest.contraction], nest.roles
    lanes = vector_elements(op.op, s.target)
    columns, rows = op.tile[roles.columns], 1 if roles.rows is None else op.tile[roles.rows]
    way = _sample_edges(s, rows, columns, lanes, ways.edges)
    widest = lanes * (MAX_VECTORS_PER_ROW if roles.rows is not None else 2 * MAX_VECTORS_PER_ROW)
    if way == "divisor":
        drawn = 2 if ways.cache_levels else 1
        *outer, register_columns = s.sample_perfect_tile(
            "columns", columns, drawn, max_innermost=widest, multiple_of=vector_multiple(columns, lanes)
        )
        cache_columns = outer[0] if outer else columns
        cache_rows, register_rows = rows, 1
        if roles.rows is not None:
            *outer, register_rows = s.sample_perfect_tile("rows", rows, drawn, max_innermost=MAX_ROWS)
            cache_rows = outer[0] if outer else rows
    else:
        cache_columns = s.sample_perfect_tile("columns", columns, 1)[0] if ways.cache_levels else columns
        register_columns = s.sample_number("register_columns", [lanes * v for v in (1, 2, 4)])
        cache_rows, register_rows = rows, 1
        if roles.rows is not None:
            cache_rows = s.sample_perfect_tile("rows", rows, 1)[0] if ways.cache_levels else rows
            register_rows = s.sample_int("register_rows", 1, MAX_ROWS)
    s.require(register_columns <= cache_columns, f"columns: register tile {register_columns} > {cache_columns}")
    s.require(register_rows <= cache_rows, f"rows: register tile {register_rows} > {cache_rows}")
    s.notes["edges_peel"] = way == "peel"
    s.notes["edges_mask"] = way == "mask"
    return RegisterTile(cache_rows, register_rows, cache_columns, register_columns, way)


def _sample_edges(s: Schedule, rows: int, columns: int, lanes: int, edges: tuple[str, ...]) -> str:
    """Choose how edges are treated, where no good register tile divides the extents."""
    good_rows = rows == 1 or any(rows % r == 0 for r in range(4, MAX_ROWS + 1))
    if not edges or columns < lanes or (columns % lanes == 0 and good_rows):
        return "divisor"
    return s.sample_choice("edges", ("divisor", *edges), weights=[1.0, *(4.0 if e == "peel" else 0.5 for e in edges)])


def _check_temporary(s: Schedule, nest: Nest) -> None:
    """The epilogues read a workgroup tile of the contraction's result, which lives on the stack."""
    op = s.ops[nest.contraction]
    result = product([op.tile[d] for d in op.op.parallel_dims]) * element_bytes(op.op)
    s.require(result <= s.target.stack_bytes, f"a temporary of {result} bytes is above {s.target.stack_bytes}")


def _tile_beside(s: Schedule, nest: Nest, index: int, tile: RegisterTile) -> tuple[Loop, ...]:
    """Tile a fill or an epilogue like the contraction, in loops of its own."""
    op = s.ops[index]
    contraction = s.dispatch.ops[nest.contraction]
    result_dims = [expr.dims[0] for expr in contraction.outputs[0].indexing_map]
    if index == nest.fill:
        loops = dict(zip(result_dims, op.op.parallel_dims, strict=True))
    else:
        loops = loops_of_root(s, nest, index)
    sizes = {loops[d]: 1 for d in nest.roles.others}
    for level in tile.register_sizes(nest.roles).values():
        sizes |= {loops[d]: size for d, size in level.items()}
    _, made = s.tile(op, sizes_for(op.op, sizes))
    return made


def _vectorize(s: Schedule, nest: Nest, tile: RegisterTile, loops: Sequence[Loop]) -> None:
    everything = [i for i in (nest.contraction, nest.fill, *nest.epilogues) if i is not None]
    if tile.edges == "peel" and not all(loop.divides for loop in loops):
        vectorize_peeled(s, loops, everything)
    elif tile.edges == "mask":
        clean_up(s)
        for index in (nest.contraction, *nest.epilogues):
            s.vectorize(s.ops[index], masked=True)
        if nest.fill is not None:
            s.emit.vectorize(s.emit.match_ops(["linalg.fill"]), s.ops[nest.fill].tile)
        s.emit.apply_patterns(*MASK_PATTERNS)
    else:
        for index in (nest.contraction, *nest.epilogues):
            s.vectorize(s.ops[index])
        s.vectorize_fills()
    s.emit.apply_patterns(*CONTRACT_PATTERNS)
