"""Contractions on CPUs: matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.

Two programs span the space. ``registers`` keeps a register tile of the result while the whole reduction runs, and
computes fill and epilogues in the same tile. ``cache`` also tiles the reduction for the caches, so the result is
written once per reduction block; fill and epilogues then work on a whole workgroup tile.

Source: the loop structure is Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008); the
rules below each name what was measured in IREE 3.13 on Zen 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.common import contraction as common
from mlir_sched.transform_scripts.common.clean_up import clean_up, vectorize_peeled
from mlir_sched.transform_scripts.common.contraction import (
    CONTRACT_PATTERNS,
    MAX_REDUCTION_STEP,
    Nest,
    Program,
    Roles,
    accumulators,
    check_unrolled,
    loops_of_root,
    tile_by_one,
    tile_reduction,
)
from mlir_sched.transform_scripts.common.extents import (
    element_bytes,
    floor_power_of_two,
    sizes_for,
    vector_elements,
    vector_multiple,
)
from mlir_sched.transform_scripts.schedule import Loop, Schedule, product

MAX_ROWS = 24
MAX_VECTORS_PER_ROW = 16
FEW_ROWS = 6
"""Rows from which wider register tiles than 4 vectors lose: they load more than they multiply (3x128: 1.2x slower)."""
MAX_UNROLLED_VECTORS = 512
"""Multiply-add vector instructions in one unrolled tile; more only costs compile time and instruction cache."""
EDGE_WEIGHTS = {"peel": 4.0, "mask": 0.5}
"""Chances of the ways to treat edges; ``divisor`` has 8, or 1 where no good register tile divides."""
CACHE_POWER, UNEVEN_CACHE_POWER, REGISTER_POWER = 0.5, 1.0, 1.0
"""Powers of tile sizes in the chances of a draw: large tiles load less per multiply-add, and have fewer edges."""
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


@dataclass(frozen=True)
class Panel:
    """A copy of all that one register tile of columns reads of their operand, with contiguous columns.

    Attributes:
        operand: Which input of the contraction.
        order: Order of its dimensions in the copy: the columns' dimension and the last one change places.
        tile: Elements along its dimensions that are copied at once.
    """

    operand: int
    order: tuple[int, ...]
    tile: tuple[int, ...]


def registers(s: Schedule, nest: Nest, ways: Ways) -> None:
    """Tile the root for registers, compute everything else inside its tile, run the whole reduction there.

    After: ``for rows_c, columns_c: for rows_r, columns_r: { fill; for k step kr: contract; epilogues }``.
    With a panel: ``for rows_c, columns_c, columns_r: { panel = transpose(b); for rows_r: {...contract(a, panel)} }``.
    """
    roles = nest.roles
    tile = _sample_register_tile(s, nest, ways)
    names = tuple(tile.cache_sizes(roles))
    order = s.sample_permutation("cache_order", names) if ways.cache_levels else ()
    register_order = s.sample_permutation("register_order", names)
    depth = s.ops[nest.contraction].tile[roles.reduction]
    (step,) = s.sample_perfect_tile(
        "reduction_step", depth, 1, max_innermost=MAX_REDUCTION_STEP, size_powers=(_step_power(s, nest),)
    )
    check_unrolled(s, nest, tile.rows, tile.columns, step, MAX_UNROLLED_VECTORS)
    panel = _sample_panel(s, nest, tile, register_order, (depth, step))
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
    _hoist_panel(s, nest, panel)
    _vectorize(s, nest, tile, loops, panel)


def cache(s: Schedule, nest: Nest, ways: Ways) -> None:
    """Tile the contraction for caches, reduction included, then for registers; fill and epilogues stand beside it.

    After: ``fill; for k_c, rows_c, columns_c (any order): for rows_r, columns_r: for k step kr: contract; epilogues``.
    """
    roles = nest.roles
    temporary = _temporary_bytes(s, nest)
    s.require(temporary <= s.target.stack_bytes, f"a temporary of {temporary} bytes is above {s.target.stack_bytes}")
    tile = _sample_register_tile(s, nest, ways)
    reduction_extent = s.ops[nest.contraction].tile[roles.reduction]
    powers = (*_cache_powers(roles, ways), _step_power(s, nest))
    *blocks, step = s.sample_perfect_tile(
        "reduction", reduction_extent, len(powers), max_innermost=MAX_REDUCTION_STEP, size_powers=powers
    )
    block = blocks[0] if blocks else reduction_extent
    s.require(
        block < reduction_extent or not nest.epilogues or not ways.cache_levels,
        "an unblocked reduction is the registers program",
    )
    check_unrolled(s, nest, tile.rows, tile.columns, step, MAX_UNROLLED_VECTORS)
    levels = tile.cache_sizes(roles)
    order = s.sample_permutation("cache_order", ("reduction", *levels)) if ways.cache_levels else ()
    register_order = s.sample_permutation("register_order", tuple(levels))
    panel = _sample_panel(s, nest, tile, register_order, (block, step), temporary)
    contraction, _ = tile_by_one(s, s.ops[nest.contraction], roles.others)
    levels["reduction"] = {roles.reduction: block}
    loops: tuple[Loop, ...] = ()
    for name in order:
        contraction, _ = s.tile(contraction, sizes_for(contraction.op, levels[name]))
    for name in register_order:
        contraction, made = s.tile(contraction, sizes_for(contraction.op, tile.register_sizes(roles)[name]))
        loops = (*loops, *made)
    tile_reduction(s, nest, step)
    if panel is not None:
        clean_up(s)
    _hoist_panel(s, nest, panel)
    for index in (nest.fill, *nest.epilogues):
        if index is not None:
            loops = (*loops, *_tile_beside(s, nest, index, tile))
    _vectorize(s, nest, tile, loops, panel)


def _sample_register_tile(s: Schedule, nest: Nest, ways: Ways) -> RegisterTile:
    """Draw the columns first, then as many rows as leave the accumulators in registers."""
    op, roles = s.ops[nest.contraction], nest.roles
    lanes, most = vector_elements(op.op, s.target), accumulators(s.target)
    columns, rows = op.tile[roles.columns], 1 if roles.rows is None else op.tile[roles.rows]
    way = _sample_edges(s, rows, columns, lanes, ways.edges)
    widest = floor_power_of_two(min(MAX_VECTORS_PER_ROW, max(1, most // min(rows, FEW_ROWS))))
    cache_columns, cache_rows, register_rows = columns, rows, 1
    if way == "divisor":
        powers = _cache_powers(roles, ways)
        *outer, register_columns = s.sample_perfect_tile(
            "columns",
            columns,
            len(powers) + 1,
            max_innermost=lanes * widest,
            multiple_of=vector_multiple(columns, lanes),
            power_of_two=columns >= lanes,
            size_powers=(*powers, 0.0),
        )
        cache_columns = outer[0] if outer else columns
        if roles.rows is not None:
            *outer, register_rows = s.sample_perfect_tile(
                "rows",
                rows,
                len(powers) + 1,
                max_innermost=_most_rows(most, register_columns, lanes),
                size_powers=(*powers, REGISTER_POWER),
            )
            cache_rows = outer[0] if outer else rows
    else:
        if ways.cache_levels:
            (cache_columns,) = s.sample_perfect_tile("columns", columns, 1, size_powers=(UNEVEN_CACHE_POWER,))
        widths = [lanes * v for v in (1, 2, 4) if v <= widest and lanes * v <= columns]
        register_columns = s.sample_number("register_columns", widths)
        if roles.rows is not None:
            if ways.cache_levels:
                (cache_rows,) = s.sample_perfect_tile("rows", rows, 1, size_powers=(UNEVEN_CACHE_POWER,))
            most_rows = min(rows, _most_rows(most, register_columns, lanes))
            counts = [r for r in range(1, most_rows + 1) if rows % r or columns % register_columns] or [most_rows]
            register_rows = s.sample_number(
                "register_rows", counts, weights=[count**REGISTER_POWER for count in counts]
            )
    s.require(register_columns <= cache_columns, f"columns: register tile {register_columns} > {cache_columns}")
    s.require(register_rows <= cache_rows, f"rows: register tile {register_rows} > {cache_rows}")
    s.notes["edges_peel"] = way == "peel"
    s.notes["edges_mask"] = way == "mask"
    return RegisterTile(cache_rows, register_rows, cache_columns, register_columns, way)


def _cache_powers(roles: Roles, ways: Ways) -> tuple[float, ...]:
    """Return the powers of the cache tiles that are drawn; a vector times a matrix reads nothing twice."""
    if not ways.cache_levels:
        return ()
    return (CACHE_POWER if roles.rows is not None else 0.0,)


def _most_rows(most_accumulators: int, columns: int, lanes: int) -> int:
    return min(MAX_ROWS, most_accumulators // math.ceil(columns / lanes))


def _sample_edges(s: Schedule, rows: int, columns: int, lanes: int, edges: tuple[str, ...]) -> str:
    """Choose how edges are treated: a register tile that does not divide the extents may use more of the registers.

    Masks are only for columns: with rows alone they keep the accumulators out of registers and win nothing.
    """
    whole_columns = columns % lanes == 0
    ways = [edge for edge in edges if edge != "mask" or not whole_columns]
    if not ways or columns < lanes or (whole_columns and rows <= FEW_ROWS):
        return "divisor"
    good_rows = rows == 1 or any(rows % r == 0 for r in range(4, MAX_ROWS + 1))
    divides = 8.0 if whole_columns and good_rows else 1.0
    return s.sample_choice("edges", ("divisor", *ways), weights=[divides, *(EDGE_WEIGHTS[way] for way in ways)])


def _temporary_bytes(s: Schedule, nest: Nest) -> int:
    """Return the size of the workgroup's tile of the contraction's result, which epilogues read from the stack."""
    op = s.ops[nest.contraction]
    return product([op.tile[d] for d in op.op.parallel_dims]) * element_bytes(op.op) if nest.epilogues else 0


def _sample_panel(
    s: Schedule,
    nest: Nest,
    tile: RegisterTile,
    register_order: tuple[str, ...],
    reduction: tuple[int, int],
    reserved_bytes: int = 0,
) -> Panel | None:
    """Choose whether the columns' operand is copied, where its columns are not contiguous.

    One copy serves all rows of a cache tile, so these are the innermost loop around the reduction; and that is a loop
    of several steps, or ``hoist_pad`` makes no buffer and what is computed is wrong (IREE 3.13).

    Args:
        s: The schedule.
        nest: The contraction.
        tile: Its register tile.
        register_order: Order of the loops over register tiles.
        reduction: Iterations of the reduction inside those loops, and of its innermost step.
        reserved_bytes: Taken on the stack already.
    """
    op, roles = s.ops[nest.contraction].op, nest.roles
    operand = _strided_operand(op, roles)
    walks_rows = register_order[-1] == "rows" and tile.rows < tile.cache_rows and not roles.outer_reductions
    if operand is None or not walks_rows or tile.edges != "divisor" or "linalg.transpose" in _names(s):
        return None
    depth, step = reduction
    tensor = op.inputs[operand].tensor
    needed = depth * tile.columns * tensor.bytes // tensor.elements
    if step == depth or needed + reserved_bytes > s.target.stack_bytes:
        return None
    if s.sample_choice("columns_operand", ("in_place", "panel"), weights=(1.0, 4.0)) == "in_place":
        return None
    dims = [expr.dims[0] for expr in op.inputs[operand].indexing_map]
    at = dims.index(roles.columns)
    order = list(range(len(dims)))
    order[at], order[-1] = order[-1], order[at]
    sizes = {roles.columns: tile.columns, roles.reduction: step}
    return Panel(operand, tuple(order), tuple(sizes.get(d, 1) for d in dims))


def _strided_operand(op: LinalgOp, roles: Roles) -> int | None:
    """Return which input walks the columns with a stride; None when none does."""
    for index, operand in enumerate(op.inputs):
        if not all(expr.is_dim() for expr in operand.indexing_map):
            continue
        dims = [expr.dims[0] for expr in operand.indexing_map]
        if roles.columns in dims and dims[-1] != roles.columns:
            return index
    return None


def _step_power(s: Schedule, nest: Nest) -> float:
    """Return the power of the reduction step in its chance: strided columns are transposed step by step."""
    return 0.0 if _strided_operand(s.ops[nest.contraction].op, nest.roles) is None else 1.0


def _names(s: Schedule) -> set[str]:
    return {op.name for op in s.dispatch.ops}


def _hoist_panel(s: Schedule, nest: Nest, panel: Panel | None) -> None:
    """Copy the panel in front of the two innermost loops: over rows and over steps of the reduction."""
    if panel is None:
        return
    tiled = s.ops[nest.contraction]
    zeros = [_zero(operand.tensor.element_type) for operand in (*tiled.op.inputs, *tiled.op.outputs)]
    handle = s.emit.hoist_operand(tiled.handle, panel.operand, zeros, len(tiled.tile), 2, panel.order)
    s.ops[nest.contraction] = replace(tiled, handle=handle)


def _zero(element_type: str) -> str:
    return f"{0 if element_type.startswith('i') else 0.0} : {element_type}"


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


def _vectorize(s: Schedule, nest: Nest, tile: RegisterTile, loops: Sequence[Loop], panel: Panel | None) -> None:
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
        if panel is not None:
            s.emit.vectorize(s.emit.match_ops(["linalg.transpose"]))
            s.emit.vectorize(s.emit.match_ops(["tensor.pad"]), panel.tile)
    s.emit.apply_patterns(*CONTRACT_PATTERNS)
