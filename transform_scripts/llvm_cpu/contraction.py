"""Contractions on CPUs: matmul, batch matmul, vector times matrix, any transposition, any generic that contracts.

Two programs span the space. ``registers`` keeps a register tile of the result while the whole reduction runs, and
computes fill and epilogues in the same tile. ``cache`` also tiles the reduction for the caches, so the result is
written once per reduction block; fill and epilogues then work on a whole workgroup tile.

Source: the loop structure is Goto & van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008); the
rules below each name what was measured in IREE 3.13 on Zen 4.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, Operand
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.common import MAX_REDUCTION_STEP, ContractionModule, by_one, tile_reduction
from mlir_sched.transform_scripts.extents import piece, vector_multiple
from mlir_sched.transform_scripts.llvm_cpu.prefetch import next_panel, sequence
from mlir_sched.transform_scripts.llvm_cpu.templates.contraction import contraction_templates
from mlir_sched.transform_scripts.llvm_cpu.templates.register_tiles import (
    MAX_APART,
    MAX_ROWS,
    MAX_UNEVEN_VECTORS,
    have_no_tails,
    most_vectors,
    stay_whole,
)
from mlir_sched.transform_scripts.llvm_cpu.templates.shares import equal_shares
from mlir_sched.transform_scripts.module import ScheduleProgram, Template
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop, Loops
from mlir_sched.transform_scripts.verbs.draws import DIVIDE, MASK, PEEL

TAIL_WEIGHTS = {PEEL: 4.0, MASK: 0.5}
"""Weights of the tail strategies; sizes that divide have weight 8, or 1 where no good register tile divides."""
PREFETCH_WEIGHT = 3.0
"""Weight of prefetching the next columns; not to has weight 1."""
CACHE_POWER, UNEVEN_CACHE_POWER, REGISTER_POWER = 0.5, 1.0, 1.0
"""Powers of tile sizes in the chances of a draw: large tiles load less per multiply-add, and have fewer tails."""


@dataclass(frozen=True)
class Ways:
    """The choices that the programs may draw.

    Attributes:
        cache_levels: Whether there are cache tiles between the workgroup's tile and the register tile.
        tails: Tail strategies that may be drawn beside sizes that divide, which are always allowed.
    """

    cache_levels: bool
    tails: tuple[str, ...]


class ContractionTiling(ContractionModule):
    """A module that tiles a contraction with its fill and element-wise epilogues for caches and registers.

    Args:
        names: Names of the programs that span the space.
        cache_levels, tails: As in :class:`Ways`.
    """

    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def __init__(
        self,
        names: tuple[str, ...] = ("registers", "cache"),
        cache_levels: bool = True,
        tails: tuple[str, ...] = (PEEL, MASK),
    ) -> None:
        self.names = names
        self.ways = Ways(cache_levels, tails)

    def programs(self) -> Mapping[str, ScheduleProgram]:
        """Return the programs by name."""
        known = {"registers": registers, "cache": cache}
        return {name: partial(known[name], ways=self.ways) for name in self.names}

    def parallel(self, found: Contraction, dispatch: Dispatch) -> Loops:
        """Return the parallel loops of the root, without rows that stay whole."""
        whole = found.rows.at if found.rows is not None and stay_whole(found) else ()
        return tuple(loop for loop in super().parallel(found, dispatch) if loop.at[0] not in whole)

    def templates(self, found: Contraction, dispatch: Dispatch, target: Target) -> Iterable[Template]:
        """Return what keeps a core busy, where the programs draw tiles for caches, too."""
        shares = equal_shares(dispatch, self.parallel(found, dispatch), target)
        made = contraction_templates(found, shares, target, self.ways.tails) if self.ways.cache_levels else ()
        return (template for template in made if template.program in self.names)


@dataclass(frozen=True)
class ContractionTile:
    """Sampled tile sizes of the columns and, if there are any, of all rows.

    Attributes:
        cache: Cache tile by loop.
        register: Register tile by loop.
        tail: Tail strategy for the iterations that the register tile leaves over.
        apart: How many iterations of a further loop of columns are in the register tile, where that is several.
    """

    cache: Mapping[Loop, int]
    register: Mapping[Loop, int]
    tail: str
    apart: Mapping[Loop, int]


@dataclass(frozen=True)
class Panel:
    """A copy of the part of the columns' operand that one register tile of columns reads, with contiguous columns.

    Attributes:
        operand: The input of the contraction.
        tile: Elements that are copied at once, by loop.
        around: Number of loops that read one copy: over steps of the reduction and, inside the columns, over all rows.
        around_rest: The same around the rows that tiles leave over, where these come again with further rows; else 0.
    """

    operand: Operand
    tile: Mapping[Loop, int]
    around: int
    around_rest: int


def registers(s: Schedule, mm: Contraction, ways: Ways) -> None:
    """Tile the root for registers, and compute all other ops, with the whole reduction, inside its register tile.

    After: ``for rows_c, columns_c: for rows_r, columns_r: { fill; for k step kr: contract; epilogues }``.
    With a panel: ``for rows_c, columns_c, columns_r: { panel = transpose(b); for rows_r: {...contract(a, panel)} }``.
    Further loops of the rows stand in front of the rows, each of whose register tiles has one iteration of them.
    With columns that lie apart: ``for k step kr: for apart: contract``, unrolled over these.
    """
    tile = _sample_register_tile(s, mm, ways, _sample_apart(s, mm))
    cache_order = _sample_cache_order(s, mm, mm.tiled, tile.cache) if ways.cache_levels else ()
    register_order = _sample_register_order(s, mm, tile)
    step = s.sample_tile("reduction_step", mm.reduction, most=MAX_REDUCTION_STEP, power=_step_power(mm))
    s.require_registers(mm.op, tile.register, step=step)
    panel = _sample_panel(s, mm, tile, register_order, (s.extent(mm.reduction), step))
    s.tile(mm.root, {**by_one(mm.outermost), **tile.apart}, order=mm.outermost, fuse=True)
    s.tile(mm.root, tile.cache, order=_with_further_rows(mm, cache_order), fuse=True)
    s.tile(mm.root, tile.register, order=_with_further_rows(mm, register_order), fuse=True)
    _cut_rest(s, mm, mm.root, tile, fuse=True)
    _reduce(s, mm, step, tile, panel)
    _prefetch(s, mm, tile, panel)
    _vectorize(s, mm, tile)


def cache(s: Schedule, mm: Contraction, ways: Ways) -> None:
    """Tile the contraction for caches, reduction included, then for registers; fill and epilogues have loops apart.

    After: ``fill; for k_c, rows_c, columns_c (any order): for rows_r, columns_r: for k step kr: contract; epilogues``.
    """
    temporary = _temporary_bytes(s, mm)
    s.require_stack(temporary)
    tile = _sample_register_tile(s, mm, ways, {})
    powers = (*_cache_powers(mm, ways), _step_power(mm))
    *blocks, step = s.sample_tiles("reduction", mm.reduction, len(powers), most=MAX_REDUCTION_STEP, powers=powers)
    whole = s.extent(mm.reduction)
    block = blocks[0] if blocks else whole
    blocked = block < whole or not mm.epilogues or not ways.cache_levels
    s.require(blocked, "an unblocked reduction is the registers program")
    s.require_registers(mm.op, tile.register, step=step)
    levels = {mm.reduction: block, **tile.cache}
    cache_order = _sample_cache_order(s, mm, (mm.reduction, *mm.tiled), levels) if ways.cache_levels else ()
    register_order = _sample_register_order(s, mm, tile)
    panel = _sample_panel(s, mm, tile, register_order, (block, step), temporary)
    s.tile(mm.op, by_one(mm.outermost))
    s.tile(mm.op, levels, order=_with_further_rows(mm, cache_order))
    s.tile(mm.op, tile.register, order=_with_further_rows(mm, register_order))
    _cut_rest(s, mm, mm.op, tile, fuse=False)
    _reduce(s, mm, step, tile, panel)
    _prefetch(s, mm, tile, panel)
    for op in mm.beside:
        s.tile(op, {**by_one(mm.others), **tile.register})
    _vectorize(s, mm, tile)


def _cut_rest(s: Schedule, mm: Contraction, op: LinalgOp, tile: ContractionTile, *, fuse: bool) -> None:
    """Cut the columns that tiles leave over, where LLVM would make scalars of them, into tiles that are vectors.

    Each has a reduction of its own. Side by side in one reduction they would keep their sums in memory: MLIR does not
    see that vectors of unlike types have no element in common.
    """
    rest = tile.cache[mm.columns] % tile.register[mm.columns]
    size = piece(rest, s.lanes(mm.op))
    if tile.tail == PEEL and size < rest:
        s.notes["rest_in_vectors"] = True
        s.cut_rest(op, mm.columns, size, fuse=fuse)


def _reduce(s: Schedule, mm: Contraction, step: int, tile: ContractionTile, panel: Panel | None) -> None:
    """Tile the reduction by a step, and copy the panel, if there is one, in front of the loops over rows and steps.

    In every step the columns that lie apart come one after the other, unrolled: they share what is read of rows.
    """
    tile_reduction(s, mm, step)
    if tile.apart:
        s.unroll(*s.tile(mm.op, by_one(tile.apart)))
    if mm.is_crossed and mm.rows is not None:
        s.interchange(mm.op, mm.rows, mm.columns)
    if panel is not None:
        if tile.tail == PEEL:
            s.peel()
        s.promote(
            mm.op,
            panel.operand,
            innermost=mm.columns,
            tile=panel.tile,
            around=panel.around,
            around_rest=panel.around_rest,
        )


def _prefetch(s: Schedule, mm: Contraction, tile: ContractionTile, panel: Panel | None) -> None:
    """Choose whether the columns that come next are fetched while the rows of a cache tile pass."""
    found = next_panel(s, mm) if panel is None and tile.tail != MASK and not tile.apart else None
    if found is not None and s.sample_yes("prefetch", yes=PREFETCH_WEIGHT, no=1.0):
        s.notes["prefetched"] = 1.0
        s.on_buffers(partial(sequence, found))


def _vectorize(s: Schedule, mm: Contraction, tile: ContractionTile) -> None:
    """Vectorize all ops; without the unit dimensions of outer reductions and of columns that lie apart.

    With such dimensions the products become no contraction: sums over 4 and 256 take 13 times as long (1024 rows, 256
    columns, Zen 4, 64 ms).
    """
    tail = tile.tail
    if mm.outer_reductions or tile.apart:
        s.peel()
        s.fold_unit_dims()
        tail = DIVIDE
    s.vectorize(*mm.ops, tail=tail, then=patterns.CONTRACT)


def _sample_apart(s: Schedule, mm: Contraction) -> dict[Loop, int]:
    """Draw how many vectors of columns that lie apart, as those of blocks do, are in a register tile.

    A tile of one vector reads an element of the rows for every vector of products, as many loads as a core makes;
    several vectors share these. Blocked products of 196 rows took 0.9 of the time so (AVX-512, blocks of 16).
    """
    loops = [loop for loop in mm.further_columns if s.extent(loop) > 1]
    one_vector = mm.rows is not None and s.extent(mm.columns) <= s.lanes(mm.op)
    if not (loops and one_vector) or mm.is_crossed or mm.strided_operand is not None:
        return {}
    count = s.sample_tile("apart", loops[-1], most=MAX_APART)
    return {loops[-1]: count} if count > 1 else {}


def _sample_register_tile(s: Schedule, mm: Contraction, ways: Ways, apart: Mapping[Loop, int]) -> ContractionTile:
    """Draw the columns first, then at most as many rows as leave the accumulators in registers."""
    lanes, most = s.lanes(mm.op), s.max_accumulators // math.prod(apart.values())
    columns, rows = s.extent(mm.columns), 1 if mm.rows is None else s.extent(mm.rows)
    tails = tuple(tail for tail in ways.tails if tail != MASK or not (mm.outer_reductions or apart))
    tail = _sample_tail(s, rows, columns, lanes, tails)
    widest = most_vectors(rows, most)
    draw = _draw_divisors if tail == DIVIDE else _draw_vectors
    cache_sizes, register_sizes = draw(s, mm, ways, widest, most)
    for loop in reversed(mm.tiled):
        small, large = register_sizes[loop], cache_sizes[loop]
        s.require(small <= large, f"{loop.name}: register tile {small} > {large}")
    for loop in mm.further_rows:
        register_sizes[loop], cache_sizes[loop] = 1, s.extent(loop)
        if ways.cache_levels:
            cache_sizes[loop] = s.sample_tile(f"further_rows_{loop.name}", loop, power=CACHE_POWER)
    loops = (*mm.further_rows, *mm.tiled)
    return ContractionTile(_in_order(loops, cache_sizes), _in_order(loops, register_sizes), tail, apart)


def _draw_divisors(
    s: Schedule, mm: Contraction, ways: Ways, widest: int, most: int
) -> tuple[dict[Loop, int], dict[Loop, int]]:
    """Draw sizes that divide: (cache tile, register tile)."""
    lanes, powers = s.lanes(mm.op), _cache_powers(mm, ways)
    cache_sizes, register_sizes = {loop: s.extent(loop) for loop in mm.tiled}, dict[Loop, int]()
    extent = s.extent(mm.columns)
    *outer, register_sizes[mm.columns] = s.sample_tiles(
        "columns",
        mm.columns,
        len(powers) + 1,
        most=lanes * widest,
        unit=vector_multiple(extent, lanes),
        power_of_two=extent >= lanes,
        powers=(*powers, 0.0),
    )
    cache_sizes[mm.columns] = outer[0] if outer else extent
    if mm.rows is not None:
        most_rows = _most_rows(most, register_sizes[mm.columns], lanes)
        powers = (*([] if stay_whole(mm) else powers), REGISTER_POWER)
        *outer, register_sizes[mm.rows] = s.sample_tiles("rows", mm.rows, len(powers), most=most_rows, powers=powers)
        cache_sizes[mm.rows] = outer[0] if outer else s.extent(mm.rows)
    return cache_sizes, register_sizes


def _draw_vectors(
    s: Schedule, mm: Contraction, ways: Ways, widest: int, most: int
) -> tuple[dict[Loop, int], dict[Loop, int]]:
    """Draw register tiles of whole vectors, which may leave tails: (cache tile, register tile)."""
    lanes, columns = s.lanes(mm.op), s.extent(mm.columns)
    cache_sizes, register_sizes = {loop: s.extent(loop) for loop in mm.tiled}, dict[Loop, int]()
    if ways.cache_levels:
        cache_sizes[mm.columns] = s.sample_tile("columns", mm.columns, power=UNEVEN_CACHE_POWER)
    most_vectors = min(widest, MAX_UNEVEN_VECTORS)
    width = register_sizes[mm.columns] = s.sample_vectors("register_columns", mm.columns, lanes, most=most_vectors)
    if mm.rows is not None:
        rows = s.extent(mm.rows)
        if ways.cache_levels and not stay_whole(mm):
            cache_sizes[mm.rows] = s.sample_tile("rows", mm.rows, power=UNEVEN_CACHE_POWER)
        most_rows = min(rows, _most_rows(most, width, lanes))
        counts = [r for r in range(1, most_rows + 1) if rows % r or columns % width] or [most_rows]
        if stay_whole(mm):
            counts = sorted({math.ceil(rows / count): count for count in reversed(counts)}.values())
        weights = [count**REGISTER_POWER for count in counts]
        register_sizes[mm.rows] = s.sample_number("register_rows", counts, weights=weights)
    return cache_sizes, register_sizes


def _sample_cache_order(s: Schedule, mm: Contraction, loops: Loops, sizes: Mapping[Loop, int]) -> Loops:
    """Draw the order of the loops over cache tiles; further rows go with the rows."""
    extents = {loop: s.extent(loop) for loop in sizes}
    return s.sample_order("cache_order", loops, still=_still(mm, loops, extents, sizes))


def _sample_register_order(s: Schedule, mm: Contraction, tile: ContractionTile) -> Loops:
    """Draw whether rows or columns are innermost; rows are where several loops of them would transpose columns."""
    if mm.rows is not None and mm.further_rows and mm.strided_operand is not None:
        return (mm.columns, mm.rows)
    return s.sample_order("register_order", mm.tiled, still=_still(mm, mm.tiled, tile.cache, tile.register))


def _still(mm: Contraction, loops: Loops, extents: Mapping[Loop, int], sizes: Mapping[Loop, int]) -> list[Loop]:
    """Return the loops over tiles that have one iteration, those of rows with their further rows."""
    parts = {loop: _with_further_rows(mm, (loop,)) for loop in loops}
    return [loop for loop in loops if all(extents[part] == sizes[part] for part in parts[loop])]


def _with_further_rows(mm: Contraction, order: Loops) -> Loops:
    """Return an order of loops with the further loops of the rows in front of the rows."""
    return tuple(each for loop in order for each in (mm.all_rows if loop is mm.rows else (loop,)))


def _in_order(loops: Loops, sizes: Mapping[Loop, int]) -> dict[Loop, int]:
    return {loop: sizes[loop] for loop in loops}


def _cache_powers(mm: Contraction, ways: Ways) -> tuple[float, ...]:
    """Return one power per cache tile to draw; it is 0 for a vector times a matrix, which reads no element twice."""
    if not ways.cache_levels:
        return ()
    return (CACHE_POWER if mm.rows is not None else 0.0,)


def _most_rows(most_accumulators: int, columns: int, lanes: int) -> int:
    return min(MAX_ROWS, most_accumulators // math.ceil(columns / lanes))


def _sample_tail(s: Schedule, rows: int, columns: int, lanes: int, tails: tuple[str, ...]) -> str:
    """Choose a tail strategy: a register tile that does not divide the extents may use more of the registers.

    Masks are only drawn where columns have a tail: on rows alone they keep the accumulators out of registers and win
    nothing.
    """
    whole_columns = columns % lanes == 0
    if have_no_tails(rows, columns, lanes):
        return DIVIDE
    ways = [tail for tail in tails if tail != MASK or not whole_columns]
    good_rows = rows == 1 or any(rows % r == 0 for r in range(4, MAX_ROWS + 1))
    divides = 8.0 if whole_columns and good_rows else 1.0
    return s.sample_tail(ways, weights=[divides, *(TAIL_WEIGHTS[way] for way in ways)])


def _temporary_bytes(s: Schedule, mm: Contraction) -> int:
    """Return the size of the workgroup's tile of the contraction's result, which epilogues read from the stack."""
    if not mm.epilogues:
        return 0
    return math.prod(s.extent(loop) for loop in (*mm.others, *mm.tiled)) * mm.op.element_bytes


def _sample_panel(
    s: Schedule,
    mm: Contraction,
    tile: ContractionTile,
    register_order: Loops,
    reduction: tuple[int, int],
    reserved_bytes: int = 0,
) -> Panel | None:
    """Choose whether the columns' operand is copied, where its columns are not contiguous.

    One copy serves all rows of a cache tile, so the loops over rows have to be the innermost around the reduction. The
    reduction has to be a loop of several steps, or ``hoist_pad`` makes no buffer and the result is wrong (IREE 3.13).

    Args:
        reduction: Iterations of the reduction inside the loops over register tiles, and of its innermost step.
    """
    operand, walks_rows = mm.strided_operand, register_order[-1] is mm.rows and not mm.outer_reductions
    transposes = any(op.name == "linalg.transpose" for op in s.dispatch.ops)
    if operand is None or not walks_rows or tile.tail == MASK or transposes:
        return None
    around, around_rest = _loops_around(mm, tile)
    if around == 1:
        return None
    depth, step = reduction
    columns = tile.register[mm.columns]
    needed = (2 if around_rest else 1) * depth * columns * operand.tensor.element_bytes
    if step == depth or not s.fits_stack(needed + reserved_bytes):
        return None
    if s.sample_choice("columns_operand", ("in_place", "panel"), weights=(1.0, 4.0)) == "in_place":
        return None
    s.notes["panel_bytes"] = depth * columns * operand.tensor.element_bytes
    return Panel(operand, {mm.columns: columns, mm.reduction: step}, around, around_rest)


def _loops_around(mm: Contraction, tile: ContractionTile) -> tuple[int, int]:
    """Return how many loops read one panel, as the attributes of :class:`Panel` say: (around full tiles, the rest)."""
    *further, rows = (tile.cache[loop] // tile.register[loop] for loop in mm.all_rows)
    steps_and_further = 1 + sum(count > 1 for count in further)
    left_over = any(tile.cache[loop] % tile.register[loop] for loop in mm.all_rows)
    again = left_over and steps_and_further > 1
    return steps_and_further + (rows > 1), steps_and_further if again else 0


def _step_power(mm: Contraction) -> float:
    """Return the power of the reduction step in its chance: 1 for strided columns, transposed step by step, else 0."""
    return 0.0 if mm.strided_operand is None else 1.0
