"""The schedule: what a transform module's program runs against. It draws decisions, emits ops and checks legality.

Beside emitting, it follows the loop nest of every op that is tiled (:class:`TiledOp`), in plain data; static legality
and cost-model features are read from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from mlir_sched.errors import IllegalTraceError
from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.sampling import (
    Categorical,
    ComputeLocation,
    Distribution,
    IntRange,
    PerfectTile,
    Permutation,
    PowerOfTwo,
)
from mlir_sched.targets.target import Target
from mlir_sched.trace import Decision, Recorder
from mlir_sched.transform_scripts.emitter import Emitter, Handle, Sampled


@dataclass(frozen=True)
class Level:
    """One tiling level of a loop nest: what runs it, and the tile that one of its iterations covers."""

    kind: str
    tile: tuple[int, ...]


@dataclass(frozen=True)
class TiledOp:
    """A payload op as it stands at this point of the schedule.

    Attributes:
        handle: Its transform handle.
        op: The payload op.
        tile: Iterations per loop that one instance of it covers; the op's extents before any tiling.
        levels: The tiling levels around it, outermost first; kinds are ``workgroup``, ``thread``,
            ``loop``, ``lanes``, ``vector``.
    """

    handle: Handle
    op: LinalgOp
    tile: tuple[int, ...]
    levels: tuple[Level, ...] = ()

    def tiled(self, handle: Handle, kind: str, sizes: Sequence[int]) -> TiledOp:
        """Return it inside one more level; a size of 0 leaves a loop whole, a size above the tile covers it."""
        tile = tuple(min(s, t) if s else t for s, t in zip(_padded(sizes, len(self.tile)), self.tile, strict=True))
        return TiledOp(handle, self.op, tile, (*self.levels, Level(kind, tile)))


@dataclass(frozen=True)
class Loop:
    """A loop that tiling made.

    Attributes:
        handle: Its transform handle.
        divides: Whether its step divides its trip, so that every iteration is a full tile.
    """

    handle: Handle
    divides: bool = True


class Schedule:
    """One run of a schedule program.

    Args:
        dispatch: The payload.
        target: What is compiled for.
        recorder: Draws or replays the decisions.
        emitter: Receives the transform ops; by default none are made.

    Attributes:
        ops: Every op of the dispatch as it stands now; steps read and replace entries.
        nests: The ops that were vectorized, with the loop nest each ended in.
        notes: Named numbers for the cost model that the loop nest does not show.
    """

    def __init__(self, dispatch: Dispatch, target: Target, recorder: Recorder, emitter: Emitter | None = None) -> None:
        self.dispatch = dispatch
        self.target = target
        self.recorder = recorder
        self.emit: Emitter = emitter or Emitter()
        handles = self.emit.match_linalg_ops(len(dispatch.ops))
        self.ops = [TiledOp(h, op, op.extents) for h, op in zip(handles, dispatch.ops, strict=True)]
        self.nests: list[TiledOp] = []
        self.notes: dict[str, float] = {}

    # Sampling ---------------------------------------------------------------------------------------------------

    def sample_perfect_tile(
        self,
        name: str,
        extent: int,
        levels: int,
        *,
        max_innermost: int = 0,
        multiple_of: int = 1,
        max_outermost: int = 0,
        power_of_two: bool = False,
        size_powers: Sequence[float] = (),
        static: bool = False,
    ) -> tuple[Sampled, ...]:
        """Draw nested tile sizes of a loop, outermost first (see :class:`PerfectTile`).

        Args:
            name: Name of the random variable, unique in the trace.
            extent: Loop extent.
            levels: Number of sizes.
            max_innermost, multiple_of, max_outermost, power_of_two, size_powers: As in :class:`PerfectTile`.
            static: The consuming op takes a static number only.
        """
        bounds = (max_innermost, multiple_of, max_outermost, power_of_two)
        return self._numbers(name, PerfectTile(int(extent), levels, *bounds, tuple(size_powers)), static)

    def sample_int(self, name: str, low: int, high: int, *, step: int = 1, static: bool = False) -> Sampled:
        """Draw an integer of ``low..high``."""
        return self._numbers(name, IntRange(low, high, step), static)[0]

    def sample_power_of_two(self, name: str, low: int, high: int, *, static: bool = False) -> Sampled:
        """Draw a power of two of ``low..high``."""
        return self._numbers(name, PowerOfTwo(low, high), static)[0]

    def sample_number(
        self, name: str, choices: Sequence[int], *, weights: Sequence[float] = (), static: bool = False
    ) -> Sampled:
        """Draw one of several numbers."""
        return self._numbers(name, Categorical(tuple(map(int, choices)), tuple(weights)), static)[0]

    def sample_choice(self, name: str, choices: Sequence[str], *, weights: Sequence[float] = ()) -> str:
        """Draw one of several words; it decides which ops are emitted."""
        return cast(str, self._structural(name, Categorical(tuple(choices), tuple(weights))).value)

    def sample_permutation(self, name: str, items: Sequence[str]) -> tuple[str, ...]:
        """Draw an order of the items."""
        return cast("tuple[str, ...]", self._structural(name, Permutation(tuple(items))).value)

    def sample_compute_location(self, name: str, locations: Sequence[str]) -> str:
        """Draw the loop to fuse at, from places named outermost first."""
        return cast(str, self._structural(name, ComputeLocation(tuple(locations))).value)

    def require(self, legal: bool, rule: str) -> None:
        """Refuse the trace unless a static rule holds.

        Raises:
            IllegalTraceError: The rule does not hold; ``rule`` is the message, with the values.
        """
        if not legal:
            raise IllegalTraceError(rule)

    # Transformations --------------------------------------------------------------------------------------------

    def distribute(
        self, op: TiledOp, sizes: Sequence[int], mapping: Sequence[str], kind: str = "workgroup"
    ) -> tuple[TiledOp, Loop]:
        """Tile an op into an ``scf.forall`` over workgroups, or over the threads of one.

        Before: ``op`` over (M, N).  After: ``forall (m, n) in (M/sm, N/sn): op`` over (sm, sn).

        Args:
            op: The op.
            sizes: One size per loop; 0 leaves it whole.
            mapping: One mapping attribute per non-zero size, outermost first.
            kind: ``workgroup`` or ``thread``.
        """
        handle, forall = self.emit.tile_using_forall(op.handle, sizes, mapping)
        return self._update(op.tiled(handle, kind, sizes)), Loop(forall)

    def tile(self, op: TiledOp, sizes: Sequence[int]) -> tuple[TiledOp, tuple[Loop, ...]]:
        """Tile an op into ``scf.for`` loops, one per non-zero size, outermost first."""
        handle, loops = self.emit.tile_using_for(op.handle, sizes)
        tiled = op.tiled(handle, "loop", sizes)
        return self._update(tiled), _loops(loops, sizes, op.tile)

    def fuse_into(self, producer: TiledOp, loop: Loop) -> tuple[TiledOp, Loop]:
        """Compute a producer inside a loop of its consumer, tile by tile."""
        handle, new_loop = self.emit.fuse_into_containing_op(producer.handle, loop.handle)
        fused = self._as_seen_by_consumer(producer, handle)
        return self._update(fused), replace(loop, handle=new_loop)

    def fuse_all_into(self, op: TiledOp, loop: Loop) -> Loop:
        """Compute everything that an op depends on inside a loop of it, last op first."""
        for other in reversed(self.dispatch.ops):
            if other.index != op.op.index:
                _, loop = self.fuse_into(self.ops[other.index], loop)
        return loop

    def fuse_producers(self, op: TiledOp, sizes: Sequence[int]) -> tuple[TiledOp, tuple[Loop, ...]]:
        """Tile an op into ``scf.for`` loops and fuse its producers greedily; their handles are lost."""
        handle, loops = self.emit.fuse(op.handle, sizes)
        tiled = self._update(op.tiled(handle, "loop", sizes))
        for other in reversed(self.ops):
            if other.op.index != op.op.index:
                self._update(self._as_seen_by_consumer(other, None))
        return tiled, _loops(loops, sizes, op.tile)

    def rematch(self, without: Sequence[int] = ()) -> None:
        """Match the dispatch's ops afresh, in program order, where fusion lost their handles; fills have none after.

        Args:
            without: Indices of ops that are gone.
        """
        named = [op for op in self.ops if op.op.kind is not OpKind.FILL and op.op.index not in without]
        handles = self.emit.split(self.emit.match_ops(sorted({op.op.name for op in named})), len(named))
        for op, handle in zip(named, handles, strict=True):
            self._update(replace(op, handle=handle))

    def vectorize_fills(self) -> None:
        """Vectorize every fill, wherever fusion and tiling put it."""
        self.emit.vectorize(self.emit.match_ops(["linalg.fill"]))

    def split_reduction_into_lanes(self, op: TiledOp, sizes: Sequence[int]) -> tuple[Handle, Handle, Loop]:
        """Keep partial results in lanes and combine them at the end (rfactor): (partial, combine, outermost loop).

        Before: ``for k: acc += a[k]``.  After: ``for k step s: acc[0:s] += a[k:k+s]``, then ``sum(acc[0:s])``.
        """
        _, partial, combine, loop = self.emit.tile_reduction_using_for(op.handle, sizes)
        divides = all(t % s == 0 for s, t in zip(sizes, op.tile, strict=True) if s)
        self._update(op.tiled(partial, "lanes", sizes))
        return partial, combine, Loop(loop, divides)

    def vectorize(self, op: TiledOp, masked: bool = False) -> None:
        """Turn an op into vector code of its tile; masked where the tile may be cut by an edge."""
        self.emit.vectorize(op.handle, op.tile if masked else ())
        self.finish(op)

    def finish(self, op: TiledOp) -> None:
        """Note that an op's loop nest is complete (for ops that are vectorized through a shared handle)."""
        self.nests.append(replace(op, levels=(*op.levels, Level("vector", op.tile))))

    # Helpers ----------------------------------------------------------------------------------------------------

    def _numbers(self, name: str, distribution: Distribution, static: bool) -> tuple[Sampled, ...]:
        self.recorder.decide(name, distribution)
        decision = self.recorder.decision(name)
        values = decision.value if isinstance(decision.value, tuple) else (decision.value,)
        return tuple(
            Sampled(int(value), decision, element, None if static else self.emit.param(decision, element))
            for element, value in enumerate(values)
        )

    def _structural(self, name: str, distribution: Distribution) -> Decision:
        self.recorder.decide(name, distribution)
        decision = self.recorder.decision(name)
        self.emit.choice(decision)
        return decision

    def _as_seen_by_consumer(self, producer: TiledOp, handle: Handle) -> TiledOp:
        """Return the producer inside the loops of its last consumer, with the tiles that those ask of it."""
        consumers = self.dispatch.consumers(producer.op.index)
        if not consumers:
            return replace(producer, handle=handle)
        consumer = self.ops[consumers[-1].index]
        tiles = producer_tiles(consumer.op, [level.tile for level in consumer.levels], producer.op)
        levels = tuple(Level(level.kind, tile) for level, tile in zip(consumer.levels, tiles, strict=True))
        return TiledOp(handle, producer.op, levels[-1].tile if levels else producer.tile, levels)

    def _update(self, op: TiledOp) -> TiledOp:
        self.ops[op.op.index] = op
        return op


def producer_tiles(consumer: LinalgOp, tiles: Sequence[tuple[int, ...]], producer: LinalgOp) -> list[tuple[int, ...]]:
    """Return the producer's iterations that each tile of a direct consumer needs.

    Loops that the consumer does not reach (reductions) are whole.
    """
    operands = (*consumer.inputs, *consumer.outputs)
    operand = next((o for o in operands if o.producer == producer.index), None)
    if operand is None:
        return [producer.extents] * len(tiles)
    made = [(place, expr.dims[0]) for place, expr in enumerate(producer.outputs[0].indexing_map) if expr.is_dim()]
    needed_by = []
    for tile in tiles:
        needed, touched = list(producer.extents), operand.touched(tile)
        for place, loop in made:
            needed[loop] = min(needed[loop], touched[place])
        needed_by.append(tuple(needed))
    return needed_by


def _loops(handles: Sequence[Handle], sizes: Sequence[int], tile: Sequence[int]) -> tuple[Loop, ...]:
    """Return the loops of tiling ``tile`` iterations by the non-zero sizes."""
    divides = [t % s == 0 for s, t in zip(_padded(sizes, len(tile)), tile, strict=True) if s]
    return tuple(Loop(handle, even) for handle, even in zip(handles, divides, strict=True))


def _padded(sizes: Sequence[int], count: int) -> list[int]:
    return [*sizes, *[0] * (count - len(sizes))]


def product(numbers: Sequence[int]) -> int:
    """Return the product of plain numbers."""
    return math.prod(int(n) for n in numbers)
