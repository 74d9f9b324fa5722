"""What all verbs of a schedule share: its payload and target, and the code as it stands."""

from collections.abc import Sequence

from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.targets.target import Target
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.tracking.handles import Handles
from mlir_sched.transform_scripts.tracking.nest import Sharing
from mlir_sched.transform_scripts.tracking.tile_loops import TileLoop, TileLoops
from mlir_sched.transform_scripts.tracking.tracked_ops import TrackedOps


class ScheduleState:
    """The state of a schedule, which the mixins of its verbs read and change; the arguments are those of the schedule.

    Attributes:
        dispatch: The payload.
        target: The target to compile for.
        notes: Named numbers for the cost model that the loop nest does not show.
        workgroup_size: Threads of a workgroup along x, y and z.
        linear_threads: Whether the iterations of loops over threads are numbered along all dimensions together, and
            threads take them in turns; else each thread has one iteration.
        sharing: What ``share`` copies into shared memory; the lowering of a target distributes these copies.
    """

    def __init__(
        self, dispatch: Dispatch, target: Target, recorder: Recorder, emitter: Emitter, passes: Sequence[str]
    ) -> None:
        self.dispatch = dispatch
        self.target = target
        self.notes: dict[str, float] = {}
        self.workgroup_size = (1, 1, 1)
        self.linear_threads = False
        self.sharing: Sharing | None = None
        self._recorder = recorder
        self._emit = emitter
        self._ops = TrackedOps(dispatch, emitter)
        self._handles = Handles(dispatch, self._ops, emitter)
        self._loops = TileLoops()
        self._promoted: list[tuple[int, ...]] = []  # tiles that are copied at once
        self._orders: dict[int, tuple[int, ...]] = {}  # of the loops of ops whose code has them in another order
        self._passes = tuple(passes)  # that have not run yet

    def _check_loops(self, *loops: TileLoop) -> None:
        """Refuse loops that are not there any more, or all where the code has no loops that can be changed."""
        self._ops.check_code()
        self._loops.check(*loops)

    def _in_code(self, op: LinalgOp, numbers: Sequence[int]) -> list[int]:
        """Return numbers, one per loop of an op, in the order in which its code has the loops."""
        return [numbers[loop] for loop in self._orders.get(op.index, range(len(numbers)))]

    def _peel(self) -> None:
        """Peel the last iterations off every loop whose step does not divide its extent, which copies ops."""
        uneven = self._loops.uneven
        if not uneven:
            return
        self._handles.mark()
        self._handles.multiply()
        for loop in reversed(uneven):  # peeling an outer loop invalidates the handles of the loops inside
            self._emit.peel(loop.handle)
        self._loops.drop(uneven)
        self._loops.peeled, self._loops.pieces = uneven, 0
