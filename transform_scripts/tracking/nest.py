"""The loop nests that tiling makes, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.structures import Loop


class Level(NamedTuple):
    """One tiling level of a loop nest: what runs it, and the tile that one of its iterations covers."""

    kind: str
    tile: tuple[int, ...]


class TiledOp(NamedTuple):
    """A payload op as it stands at this point of the schedule.

    Attributes:
        op: The payload op.
        tile: Iterations per loop that one instance of the op covers; the op's extents before any tiling.
        levels: The tiling levels around the op, outermost first; kinds are ``workgroup``, ``subgroup``,
            ``thread``, ``loop``, ``lanes``, ``vector``.
    """

    op: LinalgOp
    tile: tuple[int, ...]
    levels: tuple[Level, ...] = ()

    def tiled(self, kind: str, sizes: Sequence[int]) -> TiledOp:
        """Return the op inside one more level; a size of 0, or above the tile, leaves a loop whole."""
        tile = tuple(min(s, t) if s else t for s, t in zip(sizes, self.tile, strict=True))
        return TiledOp(self.op, tile, (*self.levels, Level(kind, tile)))


@dataclass(frozen=True)
class SharedTile:
    """A tile of a tensor in the memory that the threads of a workgroup share.

    Attributes:
        shape: Elements along each dimension.
        element_bytes: Size of an element.
    """

    shape: tuple[int, ...]
    element_bytes: int

    def bytes(self, padding: int = 0) -> int:
        """Return the size of the tile, whose rows have ``padding`` further bytes."""
        *outer, row = self.shape
        return math.prod(outer) * (row * self.element_bytes + padding)


@dataclass(frozen=True)
class Sharing:
    """What the threads of a workgroup copy into shared memory for an op, in every step of a loop.

    Attributes:
        tiles: The tiles of one step.
        steps: Steps of the loop; 1 where there is none, or more than one: then copies cannot run ahead of the steps.
    """

    tiles: tuple[SharedTile, ...]
    steps: int

    def bytes(self, buffers: int = 1, padding: int = 0) -> int:
        """Return the size of ``buffers`` buffers of all tiles, whose rows have ``padding`` further bytes."""
        return buffers * sum(tile.bytes(padding) for tile in self.tiles)


def numbers_of(op: LinalgOp, sizes: Mapping[Loop, int]) -> list[int]:
    """Return one size per loop of an op: the given one, or 0 (leave whole)."""
    numbers = [0] * len(op.extents)
    for loop, size in sizes.items():
        numbers[loop.position(op)] = size
    return numbers


def shared_tiles(op: LinalgOp, tile: Sequence[int]) -> tuple[SharedTile, ...]:
    """Return what an op reads of its inputs while its loops run over a tile."""
    return tuple(SharedTile(tuple(o.touched(tile)), o.tensor.element_bytes) for o in op.inputs)


def points(op: LinalgOp, tile: Sequence[int]) -> int:
    """Return how many results of an op are in a tile: the product of its iterations along parallel loops."""
    return math.prod(int(tile[position]) for position in op.parallel_dims)


def nest_of(op: LinalgOp, levels: Sequence[tuple[str, Mapping[Loop, int]]]) -> TiledOp:
    """Return an op inside levels that the compiler will make, outermost first: (kind of level, sizes by loop)."""
    nest = TiledOp(op, op.extents)
    for kind, sizes in levels:
        nest = nest.tiled(kind, numbers_of(op, sizes))
    return nest


def size_list(op: LinalgOp, sizes: Mapping[Loop, int]) -> str:
    """Return sizes as a ``lowering_config`` lists them: one per loop of an op, 0 for a loop that stays whole."""
    return f"[{', '.join(str(int(size)) for size in numbers_of(op, sizes))}]"
