"""The schedule, whose methods a transform module's program calls: it draws decisions, emits ops and checks legality.

Programs name ops of the payload and loops of a structure (``structures.py``), never handles. Beside emitting, the
schedule records the loop nest of every tiled op as plain data (``tracked_ops.py``); static legality and cost-model
features are read from this record. Handles that a verb invalidates are matched again before their next use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from mlir_sched.errors import ScheduleError
from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts import patterns
from mlir_sched.transform_scripts.draws import DIVIDE, MASK, PEEL
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.facts import Facts
from mlir_sched.transform_scripts.nest import (
    Sharing,
    TiledOp,
    TileLoop,
    nest_of,
    numbers_of,
    shared_tiles,
    tile_loops,
)
from mlir_sched.transform_scripts.structures import Loop
from mlir_sched.transform_scripts.tracked_ops import Code

_REMATERIALIZE = "iree-codegen-rematerialize-parallel-ops"
_PARTS_OF_REDUCTIONS = ("linalg.fill", "linalg.generic", "linalg.reduce")
"""Names of the ops that a dispatch consists of once its reductions keep partial results."""


class Schedule(Facts):
    """One run of a schedule program.

    Args:
        dispatch: The payload.
        target: The target to compile for.
        recorder: Draws the decisions, or takes given ones.
        emitter: Receives the transform ops; by default no ops are built.

    Attributes:
        sharing: What :meth:`share` copies into shared memory; the lowering of a target distributes these copies.
    """

    def __init__(self, dispatch: Dispatch, target: Target, recorder: Recorder, emitter: Emitter | None = None) -> None:
        super().__init__(dispatch, target, recorder, emitter or Emitter())
        self._made: list[TileLoop] = []
        self._peeled: list[TileLoop] = []
        self._gone: list[TileLoop] = []
        self._buffers: list[tuple[int, ...]] = []
        self.sharing: Sharing | None = None

    # Tiling and fusion ------------------------------------------------------------------------------------------

    def distribute(
        self, op: LinalgOp, sizes: Mapping[Loop, int], mapping: Sequence[str], *, over: str = "workgroup"
    ) -> TileLoop:
        """Tile an op into an ``scf.forall`` over workgroups, or over the threads of a workgroup.

        Before: ``op`` over (M, N).  After: ``forall (m, n) in (M/sm, N/sn): op`` over (sm, sn).

        Args:
            op: The op.
            sizes: Sizes by loop; other loops stay whole.
            mapping: One mapping attribute per size, outermost first.
            over: ``workgroup`` or ``thread``.
        """
        tiled = self._ops.found(op)
        numbers = self._numbers_of(op, sizes)
        handle, forall = self._emit.tile_using_forall(tiled.handle, numbers, mapping)
        self._ops.update(tiled.tiled(handle, over, numbers))
        return TileLoop(forall)

    def tile(
        self,
        op: LinalgOp,
        sizes: Mapping[Loop, int],
        *,
        order: Sequence[Loop] | None = None,
        fuse: bool | Sequence[LinalgOp] = False,
    ) -> tuple[TileLoop, ...]:
        """Tile an op into ``scf.for`` loops.

        Args:
            op: The op.
            sizes: Tile sizes by loop; other loops stay whole.
            order: The loops to tile, one after the other, outermost first; by default all at once, in the op's order.
            fuse: Whether to compute all producers of the op inside the innermost of these loops, or which ops. The code
                is then cleaned up, so that shapes are static where they can be, also where there is nothing to tile.

        Returns:
            The loops that were made, outermost first.
        """
        groups = [sizes] if order is None else [{loop: sizes[loop]} for loop in order]
        made: list[TileLoop] = []
        if fuse:
            self._ops.mark()
        for group in filter(None, groups):
            made += self._fuse_producers(op, group) if fuse is True else self._tile(op, group)
        self._made += made
        if not isinstance(fuse, bool) and made:
            made[-1] = self.fuse(*fuse, into=made[-1])
        if fuse:
            self._ops.end_handles(kept=op)
            self._ops.code = Code.UNTIDY
        return tuple(made)

    def fuse(self, *ops: LinalgOp, into: TileLoop) -> TileLoop:
        """Compute ops inside a loop of their consumer, the last op first; return the loop with its new handle."""
        self._check_loops(into)
        containing = into.handle
        for op in reversed(ops):
            handle, containing = self._emit.fuse_into_containing_op(self._ops.found(op).handle, containing)
            self._ops.fuse(op, handle)
        loop = replace(into, handle=containing)
        self._made = [loop if made is into else made for made in self._made]
        return loop

    def fuse_rest(self, op: LinalgOp, into: TileLoop) -> TileLoop:
        """Compute all other ops of the dispatch inside a loop of an op."""
        return self.fuse(*(other for other in self.dispatch.ops if other.index != op.index), into=into)

    def rfactor(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> TileLoop:
        """Keep partial results of a reduction in lanes and combine them at the end.

        Before: ``for k: acc += a[k]``.  After: ``for k step s: acc[0:s] += a[k:k+s]``, then ``sum(acc[0:s])``.

        Args:
            op: The reduction.
            sizes: Number of lanes by reduction loop; 1 for loops without lanes.
        """
        numbers, tiled = numbers_of(op, sizes), self._ops.found(op)
        _, partial, combine, handle = self._emit.tile_reduction_using_for(tiled.handle, numbers)
        uneven = next((loop for loop, size in sizes.items() if self.extent(loop, op) % size), None)
        extent, size = (1, 1) if uneven is None else (self.extent(uneven, op), int(sizes[uneven]))
        self._ops.split(tiled.tiled(partial, "lanes", numbers), combine)
        made = TileLoop(handle, uneven, extent, size)
        self._made.append(made)
        return made

    def inline(self, *ops: LinalgOp) -> None:
        """Compute element-wise ops again in each of their readers, in place of keeping their results.

        Args:
            ops: The ops; these have to be all ops that the compiler's pass rematerialises.
        """
        if not ops:
            return
        self._ops.check_code()
        self._ops.mark()
        self._ops.tidy()
        self._ops.end_handles()
        self._emit.run_pass(_REMATERIALIZE)
        self._ops.remove(ops)

    # Buffers ----------------------------------------------------------------------------------------------------

    def promote(self, op: LinalgOp, operand: int, *, order: Sequence[int], tile: Sequence[int], around: int) -> None:
        """Copy an operand's tiles, transposed, into a buffer in front of the innermost loops around an op.

        The copy is vectorized with the op, by a match of every ``linalg.transpose`` and every ``tensor.pad`` of the
        function, so that the dispatch should have none of its own.

        Args:
            op: The op.
            operand: Index of the input.
            order: Order of the operand's dimensions in the buffer; a permutation that is its own inverse.
            tile: Elements along the operand's dimensions that are copied at once.
            around: Number of innermost loops around the op that the copy is hoisted out of.
        """
        tiled = self._ops.found(op)
        if self._ops.code is Code.DISTRIBUTED:
            self._ops.clean_up()
        zeros = [_zero(each.tensor.element_type) for each in (*op.inputs, *op.outputs)]
        handle = self._emit.hoist_operand(tiled.handle, operand, zeros, len(tiled.tile), around, order)
        self._ops.update(tiled.held(handle))
        self._buffers.append(tuple(tile))

    def share(self, op: LinalgOp, *operands: int) -> None:
        """Copy the tiles of inputs into memory that the threads of a workgroup share, in front of an op.

        The lowering distributes the copies over the threads of the workgroup, one vector of 16 bytes after the other.

        Args:
            op: The op; its tile is that of a workgroup, inside the loops that walk the reduction.
            operands: Indices of the inputs.
        """
        tiled = self._ops.found(op)
        self._ops.update(tiled.held(self._emit.share_operands(tiled.handle, operands)))
        self.sharing = Sharing(shared_tiles(op, tiled.tile, operands), _steps(tiled))

    def pack(
        self, op: LinalgOp, sizes: Mapping[Loop, int], *, operand: int, order: Sequence[int], copy: Sequence[int]
    ) -> None:
        """Make groups of iterations of some loops innermost in memory: copy one operand, and view the others.

        The schedule goes on with the op's loops as they were, without loops over the iterations of a group. A match of
        every ``linalg.transpose`` of the function tiles the copy, so that the dispatch should have none of its own.

        Args:
            op: The op; the code of its tile is a ``linalg.generic`` from here on.
            sizes: Iterations of a group by loop.
            operand: Index of the input that is copied.
            order: Order of the input's dimensions in the copy; a permutation that is its own inverse.
            copy: Tile sizes of the copying op, along the dimensions in their new order.
        """
        packed = self._emit.pack(self._ops.found(op).handle, numbers_of(op, sizes))
        if list(order) != sorted(order):
            packed = self._emit.transpose_pack(packed, operand, order)
        self._emit.lower_packs()
        self._ops.clean_up()
        tiled, _ = self._emit.tile_using_for(self._emit.match_ops(["linalg.transpose"]), copy)
        self._emit.vectorize(tiled)
        self._ops.rename(self._ops[op].held(packed))

    def read_padding_in_place(self) -> None:
        """Read a padded tensor in place instead of a padded copy, each vector on the condition that it is not padding.

        A tile of 1 along the padded dimensions lies wholly inside the tensor or wholly outside. Most conditions fold,
        or hold for a whole row. Of the verbs on ops and loops only :meth:`fold_unit_dims` may follow.
        """
        self._ops.check_code()
        self._emit.apply_patterns(*patterns.MERGE_SLICES)
        self._emit.run_pass("iree-codegen-fuse-tensor-pad-with-consumer")
        self._ops.clean_up()
        self._emit.run_pass("iree-codegen-vectorize-tensor-pad")
        self._ops.close_code(Code.PADDING_READ)

    # Tails, unrolling, vectors ----------------------------------------------------------------------------------

    def peel(self) -> None:
        """Peel the last iterations off every loop whose step does not divide its extent, inner loops first.

        The code is then cleaned up, as after a :meth:`tile` that fuses. From here on verbs act on all copies of an op
        at once, and :meth:`extent` and :meth:`tile_of` say what full tiles have; :meth:`copies` tells the copies apart.
        """
        self._ops.check_code()
        if any(loop.rest for loop in self._made):
            self._ops.settle()
            self._peel()
            self._ops.code = Code.UNTIDY

    def copies(self, *ops: LinalgOp) -> Iterator[LinalgOp]:
        """Peel, and yield ops once per copy of their tile that this makes, tails first; the full tiles come last.

        The ops have to be inside all loops that :meth:`peel` peels. Until the next op is yielded, the schedule's verbs
        act on the copy that was yielded, and refuse every other op. Afterwards only verbs that act on all code of the
        function may follow, as :meth:`fold_unit_dims` does.
        """
        self._ops.check_code()
        self._peel()
        for copy in self._ops.copies(ops, self._peeled):
            yield copy.op

    def unroll(self, *loops: TileLoop) -> None:
        """Unroll loops completely, the last loop first; from here on verbs act on all copies of an op at once."""
        if not loops:
            return
        self._check_loops(*loops)
        self._ops.settle()
        self._ops.multiply()
        for loop in reversed(loops):
            self._emit.unroll(loop.handle, loop.extent // loop.size)
        self._drop(loops)

    def fold_unit_dims(self) -> None:
        """Drop unit dimensions from all ops of the function; afterwards these can only be vectorized, all together.

        Other verbs on ops and loops refuse to follow, and so does :meth:`vectorize` of some of the ops.
        """
        self._emit.run_pass("linalg-generalize-named-ops")  # a fill has unit dimensions to fold, too
        self._ops.clean_up()
        self._emit.apply_patterns(*patterns.FOLD_UNIT_DIMS)
        self._emit.cse()
        self._ops.close_code(Code.FOLDED)

    def vectorize(self, *ops: LinalgOp, tail: str = DIVIDE, then: Sequence[str] = ()) -> None:
        """Vectorize the tiles of ops, and the copies into the buffers that were made for the ops.

        Args:
            ops: The ops.
            tail: Tail strategy: :data:`PEEL` first peels the iterations off that steps leave over, :data:`MASK` masks
                the vectors, :data:`DIVIDE` says that no iterations are left over.
            then: Pattern sets to apply at the end.

        Raises:
            IllegalTraceError: Fills of unlike tiles are to be masked; they are vectorized all at once.
            ScheduleError: Unit dimensions are folded, and these are not all ops, or tails are still to be peeled.
        """
        self._ops.settle()
        if self._ops.code is Code.FOLDED:
            self._vectorize_folded(ops, tail)
        elif tail == PEEL and any(loop.rest for loop in self._made):
            self._vectorize_peeled(ops)
        else:
            self._vectorize_tiles(ops, masked=tail == MASK)
        for op in ops:
            if op.kind is not OpKind.FILL:
                self._ops.finish(self._ops[op])
        if then:
            self._emit.apply_patterns(*then)

    def tensorize(self, op: LinalgOp, function: str) -> None:
        """Replace the code of an op's tile, the only ``linalg.generic`` that is left, by a function.

        Args:
            op: The op.
            function: As in :meth:`~mlir_sched.transform_scripts.emitter.Emitter.replace_by_function`.
        """
        self._ops.check(op)
        self._ops.clean_up()
        self._emit.replace_by_function(self._emit.match_ops(["linalg.generic"]), function)
        self._ops.finish(self._ops[op])

    # The rest of the function -----------------------------------------------------------------------------------

    def apply_patterns(self, *names: str, cse: bool = False) -> None:
        """Apply pattern sets to the function, followed by common subexpression elimination if ``cse`` is set."""
        self._emit.apply_patterns(*names)
        if cse:
            self._emit.cse()

    def run_pass(self, name: str) -> None:
        """Run one of the compiler's passes on the function; ops are found again at their next use."""
        self._ops.mark()
        self._ops.end_handles()
        self._emit.run_pass(name)

    def annotate(self, name: str, attribute: str, *, on: LinalgOp | str | None = None) -> None:
        """Annotate an op, all ops of a name, or the function with an attribute in MLIR syntax."""
        if isinstance(on, LinalgOp):
            target = self._ops.found(on).handle
        else:
            target = None if on is None else self._emit.match_ops([on])
        self._emit.annotate(target, name, attribute)

    def raw(
        self,
        name: str,
        *,
        on: TileLoop | None = None,
        attributes: Mapping[str, str] | None = None,
        replaces_function: bool = False,
        ends_handles: bool = False,
    ) -> None:
        """Emit an op of the transform dialect that has no method here, on a loop or, by default, on the function.

        The schedule cannot know which handles the op ends. An op that replaces the function's handle ends all handles
        of ops and loops; any other is taken to end none, unless ``ends_handles`` says that it does. Ops are then found
        again at their next use, all copies of them; loops are not.

        Args:
            name: The op's full name.
            on: The loop that is the op's operand.
            attributes: The op's attributes in MLIR syntax.
            replaces_function: Whether the op's only result replaces the function's handle; if not, it has no result.
            ends_handles: Whether the op copies, moves or replaces ops of the dispatch.
        """
        if on is not None:
            self._check_loops(on)
        if ends_handles:
            self._ops.settle()
        if ends_handles or replaces_function:
            self._ops.multiply()
        target = None if on is None else on.handle
        self._emit.op(name, target, attributes=attributes, replaces_function=replaces_function)

    def raw_on_all(self, name: str, kind: str, attributes: Mapping[str, str]) -> None:
        """Emit an op of the transform dialect that has no method here, on all ops of a kind in the function.

        Args:
            name: The op's full name; the op has one result, which is not used.
            kind: Full name of the ops; they are none of the dispatch's.
            attributes: The op's attributes in MLIR syntax.
        """
        self._emit.op_on_all(name, kind, attributes)

    def delegate(
        self, op: LinalgOp, config: str, pipeline: str, levels: Sequence[tuple[str, Mapping[Loop, int]]]
    ) -> None:
        """Leave the dispatch to one of IREE's own pipelines.

        Args:
            op: The op to annotate with its tile sizes.
            config: The op's ``lowering_config``.
            pipeline: The function's ``translation_info``.
            levels: The tiling levels that the pipeline will make, outermost first: (kind of level, sizes by loop).
        """
        self.annotate("lowering_config", config, on=op)
        self.annotate("translation_info", pipeline)
        self._ops.finish(nest_of(op, levels))

    # Helpers ----------------------------------------------------------------------------------------------------

    def _numbers_of(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> list[int]:
        """Return one size per loop of an op that was found; none of them is a parameter where the op has copies."""
        numbers = numbers_of(op, sizes)
        return [*map(int, numbers)] if self._ops.is_copied(op) else numbers

    def _check_loops(self, *loops: TileLoop) -> None:
        """Refuse loops that are not there any more.

        Raises:
            ScheduleError: A loop was peeled or unrolled, or the code has no loops that can be changed.
        """
        self._ops.check_code()
        for loop in loops:
            if loop in self._gone:
                name = "a loop" if loop.loop is None else f"the loop {loop.loop.name}"
                raise ScheduleError(f"{name} was peeled or unrolled before; no verb can change it any more")

    def _drop(self, loops: Sequence[TileLoop]) -> None:
        self._gone += loops
        self._made = [loop for loop in self._made if loop not in loops]

    def _peel(self) -> None:
        uneven = [loop for loop in self._made if loop.rest]
        if not uneven:
            return
        self._ops.mark()
        self._ops.multiply()
        for loop in reversed(uneven):  # peeling an outer loop invalidates the handles of the loops inside
            self._emit.peel(loop.handle)
        self._drop(uneven)
        self._peeled = uneven

    def _mask_sizes(self, op: LinalgOp) -> tuple[int, ...]:
        tile = self._ops.tile(op.index)
        return tuple(map(int, tile)) if self._ops.is_copied(op) else tile

    def _tile(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> list[TileLoop]:
        tiled = self._ops.found(op)
        numbers = self._numbers_of(op, sizes)
        handle, loops = self._emit.tile_using_for(tiled.handle, numbers)
        self._ops.update(tiled.tiled(handle, "loop", numbers))
        return tile_loops(loops, op, sizes, tiled.tile)

    def _fuse_producers(self, op: LinalgOp, sizes: Mapping[Loop, int]) -> list[TileLoop]:
        """Tile an op and fuse its producers greedily, which invalidates the producers' handles."""
        tiled = self._ops.kept(op)
        numbers = self._numbers_of(op, sizes)
        self._ops.end_handles(kept=op)
        handle, loops = self._emit.fuse(tiled.handle, numbers)
        self._ops.update(tiled.tiled(handle, "loop", numbers))
        for other in reversed(self.dispatch.ops):
            if other.index != op.index:
                self._ops.fuse(other)
        return tile_loops(loops, op, sizes, tiled.tile)

    def _vectorize_folded(self, ops: Sequence[LinalgOp], tail: str) -> None:
        if tail == PEEL and any(loop.rest for loop in self._made):
            raise ScheduleError(f"{self._ops.rule}; peel() has to come before")
        left = [op.name for op in self._ops.unfinished if op not in ops]
        if left:
            raise ScheduleError(f"{self._ops.rule}; {', '.join(left)} would be left")
        self._emit.vectorize(self._emit.match_ops(["linalg.generic"]))

    def _vectorize_peeled(self, ops: Sequence[LinalgOp]) -> None:
        for op in ops:
            self._ops.check(op)
        self._peel()
        self._peeled = []
        self._ops.clean_up()
        names = _PARTS_OF_REDUCTIONS if self._ops.has_partial_results else sorted({op.name for op in ops})
        self._emit.vectorize(self._emit.match_ops(names))

    def _vectorize_tiles(self, ops: Sequence[LinalgOp], *, masked: bool) -> None:
        self._ops.check_code()
        if masked:
            self._ops.clean_up()
        for op in ops:
            if op.kind is not OpKind.FILL:
                parts = self._ops.parts(op)
                sizes = self._mask_sizes(op) if masked and len(parts) == 1 else ()
                for handle in parts:
                    self._emit.vectorize(handle, sizes)
        fills = [op for op in ops if op.kind is OpKind.FILL]
        if masked:
            tiles = sorted({self._ops[fill].tile for fill in fills})
            self.require(len(tiles) <= 1, f"fills of the tiles {tiles} cannot share their masks")
        for fill in fills[:1]:  # all fills at once, wherever fusion put them
            self._emit.vectorize(self._emit.match_ops([fill.name]), self._ops[fill].tile if masked else ())
        for tile in self._buffers:
            self._emit.vectorize(self._emit.match_ops(["linalg.transpose"]))
            self._emit.vectorize(self._emit.match_ops(["tensor.pad"]), tile)
        if masked:
            self._emit.apply_patterns(*patterns.MASKS)


def _zero(element_type: str) -> str:
    return f"{0 if element_type.startswith('i') else 0.0} : {element_type}"


def _steps(op: TiledOp) -> int:
    """Return the steps of the only loop around an op; 1 where there is none, or more than one."""
    trips = [
        math.prod(whole // size for whole, size in zip(outer.tile, inner.tile, strict=True))
        for outer, inner in pairwise(op.levels)
        if inner.kind == "loop"
    ]
    loops = [trip for trip in trips if trip > 1]
    return loops[0] if len(loops) == 1 else 1


def product(numbers: Sequence[int]) -> int:
    """Return the product of numbers as a plain ``int``."""
    return math.prod(int(n) for n in numbers)
