"""The loops that the verbs of a schedule made, as long as they can be changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from mlir_sched.errors import ScheduleError
from mlir_sched.payload import LinalgOp
from mlir_sched.transform_scripts.emitter import Handle
from mlir_sched.transform_scripts.structures import Loop


@dataclass(frozen=True, eq=False)
class TileLoop:
    """A loop that tiling made.

    Attributes:
        handle: Its transform handle.
        loop: The loop that was tiled; None for an ``scf.forall``, and for the loop over lanes that divide.
        extent: Iterations of the tiled loop that this loop walks.
        size: Iterations of the tiled loop that one step covers.
    """

    handle: Handle
    loop: Loop | None = None
    extent: int = 1
    size: int = 1

    @property
    def rest(self) -> int:
        """Number of iterations that whole steps leave over; 0 where the first step covers all."""
        return self.extent % self.size if self.size < self.extent else 0


class TileLoops:
    """The ``scf.for`` loops of a function that tiling made, and those that are gone.

    Attributes:
        peeled: The loops whose peeling made the copies of ops that can be told apart.
        pieces: How many further copies of an op there are, because copies were cut into pieces.
    """

    def __init__(self) -> None:
        self.peeled: list[TileLoop] = []
        self.pieces = 0
        self._made: list[TileLoop] = []
        self._gone: list[TileLoop] = []

    @property
    def uneven(self) -> list[TileLoop]:
        """The loops whose step does not divide their extent, in the order in which they were made."""
        return [loop for loop in self._made if loop.rest]

    @property
    def copies(self) -> list[tuple[int, ...]]:
        """Per copy that peeling made of the ops inside, in program order, the size of each peeled loop."""
        return list(product(*((loop.size, loop.rest) for loop in self.peeled)))

    def add(self, *loops: TileLoop) -> None:
        """Note loops that were made, outermost first."""
        self._made += loops

    def hold(self, loop: TileLoop, handle: Handle) -> TileLoop:
        """Note the new handle of a loop, and return the loop with it."""
        held = TileLoop(handle, loop.loop, loop.extent, loop.size)  # dataclasses.replace takes several times as long
        self._made = [held if made is loop else made for made in self._made]
        return held

    def drop(self, loops: Sequence[TileLoop]) -> None:
        """Note that loops were peeled or unrolled."""
        self._gone += loops
        self._made = [loop for loop in self._made if loop not in loops]

    def drop_all(self) -> None:
        """Note that the handles of all loops were given up."""
        self.drop(self._made)

    def check(self, *loops: TileLoop) -> None:
        """Refuse loops that are not there any more.

        Raises:
            ScheduleError: A loop was peeled, unrolled or given up.
        """
        for loop in loops:
            if loop in self._gone:
                name = "a loop" if loop.loop is None else f"the loop {loop.loop.name}"
                raise ScheduleError(f"{name} was peeled, unrolled or given up before; no verb can change it any more")


def made_loops(
    handles: Sequence[Handle], op: LinalgOp, sizes: Mapping[Loop, int], tile: Sequence[int]
) -> list[TileLoop]:
    """Return the loops that tiling an op of extents ``tile`` by ``sizes`` makes, in the order of the op's loops."""
    placed = sorted((loop.position(op), loop, int(size)) for loop, size in sizes.items())
    made = zip(handles, placed, strict=True)
    return [TileLoop(handle, loop, tile[position], size) for handle, (position, loop, size) in made]
