"""The structures that modules find in a dispatch and programs refer to: loops, and ops that belong together."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from mlir_sched.payload import LinalgOp, Operand, OpKind


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of a dispatch: iterations that several of its ops may walk.

    Attributes:
        name: What traces call the loop, e.g. ``rows``.
        extent: Its iterations in the dispatch.
        at: Where ops walk the loop, as (index of the op, position among the op's loops); the first op's tile tells
            the loop's extent in the current tile.
    """

    name: str
    extent: int
    at: tuple[tuple[int, int], ...]

    def is_walked_by(self, op: LinalgOp) -> bool:
        """Say whether an op walks the loop."""
        return any(index == op.index for index, _ in self.at)

    def position(self, op: LinalgOp) -> int:
        """Return the position of the loop among the loops of an op that walks it."""
        assert op.index in self._positions, f"{op.name} does not walk the loop {self.name}"
        return self._positions[op.index]

    @cached_property
    def _positions(self) -> dict[int, int]:
        return dict(reversed(self.at))  # the first position of an op that walks the loop twice


Loops: TypeAlias = tuple[Loop, ...]


def loop_of(op: LinalgOp, position: int, name: str = "") -> Loop:
    """Return a loop that only one op walks, named by its position unless a name is given."""
    return Loop(name or str(position), op.extents[position], ((op.index, position),))


def parallel_loops(op: LinalgOp) -> Loops:
    """Return the parallel loops of an op, in its order, named by their positions; no other op walks them."""
    return tuple(loop_of(op, position) for position in op.parallel_dims)


def reduction_loops(op: LinalgOp) -> Loops:
    """Return the reduction loops of an op, in its order, named by their positions."""
    return tuple(loop_of(op, position) for position in op.reduction_dims)


def contiguous_loop(op: LinalgOp, loops: Iterable[Loop]) -> Loop | None:
    """Return the loop, of some loops, that walks the contiguous dimension of an op's result; None if none does."""
    place = (op.index, op.contiguous_dim)
    return next((loop for loop in loops if place in loop.at), None)


def are_crossed(op: LinalgOp, *loops: Loop) -> bool:
    """Say whether, of two loops of a generic contraction that walk one input each, the first input's comes second.

    MLIR makes no outer products of such loops (``LowerVectorContract.cpp``): their products are computed element by
    element.
    """
    first, second = (
        [place for loop in loops if (place := loop.position(op)) in operand.dims] for operand in op.inputs[:2]
    )
    return op.name == "linalg.generic" and len(first) == len(second) == 1 and first > second


@dataclass(frozen=True)
class Structure:
    """An op with its fill and its epilogues in a dispatch.

    Attributes:
        op: The op that a matcher was asked about.
        fill: The fill that initialises its result; None if the dispatch has no such fill.
        epilogues: The element-wise ops behind it, in order.
    """

    op: LinalgOp
    fill: LinalgOp | None
    epilogues: tuple[LinalgOp, ...]

    def position(self, loop: Loop) -> int:
        """Return the position of a loop among the loops of the op."""
        return loop.position(self.op)

    @property
    def root(self) -> LinalgOp:
        """The op that makes the dispatch's result."""
        return self.epilogues[-1] if self.epilogues else self.op

    @property
    def ops(self) -> tuple[LinalgOp, ...]:
        """All ops in program order."""
        return (*(() if self.fill is None else (self.fill,)), self.op, *self.epilogues)

    @property
    def beside(self) -> tuple[LinalgOp, ...]:
        """The fill and the epilogues."""
        return (*(() if self.fill is None else (self.fill,)), *self.epilogues)


@dataclass(frozen=True)
class Contraction(Structure):
    """A contraction with its fill and epilogues; its loops are named by their role in tiling.

    Attributes:
        columns: The loop of the result's contiguous dimension: the vector dimension.
        rows: A parallel loop that only the input without columns reads: the contiguous one, or the longest if that is
            short; None when none is longer than 1.
        others: The remaining parallel loops longer than 1.
        reduction: The innermost reduction loop.
        outer_reductions: The remaining reduction loops longer than 1.
    """

    columns: Loop
    rows: Loop | None
    others: Loops
    reduction: Loop
    outer_reductions: Loops

    @cached_property
    def is_crossed(self) -> bool:
        """Whether rows and columns are crossed loops."""
        return self.rows is not None and are_crossed(self.op, self.rows, self.columns)

    @cached_property
    def strided_operand(self) -> Operand | None:
        """The input that walks the columns with a stride; None when no input does."""
        columns = self.position(self.columns)
        for operand in self.op.inputs:
            if not all(expr.is_dim for expr in operand.indexing_map):
                continue
            if columns in operand.loops and operand.loops[-1] != columns:
                return operand
        return None

    @property
    def tiled(self) -> Loops:
        """The loops with register tiles of their own: rows, if there are any, and columns."""
        return (self.columns,) if self.rows is None else (self.rows, self.columns)

    @cached_property
    def further_rows(self) -> Loops:
        """The other loops that only the input without columns reads: what is read along columns serves all of them."""
        columns = self.position(self.columns)
        read = {dim for operand in self.op.inputs[:2] if columns in operand.dims for dim in operand.dims}
        return tuple(loop for loop in self.others if self.position(loop) not in read)

    @cached_property
    def further_columns(self) -> Loops:
        """The other loops that only the input with columns reads: what is read along rows serves all of them."""
        batch, rows = self.op.contraction_dims.batch, self.further_rows
        return tuple(loop for loop in self.others if loop not in rows and self.position(loop) not in batch)

    @property
    def all_rows(self) -> Loops:
        """The further rows, in the op's order, and the rows, if there are any."""
        return (*self.further_rows, *self.tiled[:-1])

    @property
    def outermost(self) -> Loops:
        """The other loops that are no further rows."""
        return tuple(loop for loop in self.others if loop not in self.further_rows)


@dataclass(frozen=True)
class Convolution(Structure):
    """A convolution or pooling with its fill and epilogues.

    Attributes:
        loops: All loops of the convolution, in its order, named by their positions.
    """

    loops: Loops

    @property
    def contiguous(self) -> Loop | None:
        """The loop of the result's contiguous dimension; None where no loop walks that dimension alone."""
        return contiguous_loop(self.op, self.parallel)

    @property
    def parallel(self) -> Loops:
        """The parallel loops, in the op's order."""
        return tuple(self.loops[position] for position in self.op.parallel_dims)


@dataclass(frozen=True)
class Elementwise:
    """A dispatch of element-wise ops and fills.

    Attributes:
        root: The op that makes the result.
        ops: All ops in program order.
        loops: The root's loops longer than 1, in its order, named by their positions.
        contiguous: The loop of the result's contiguous dimension; it is among ``loops`` if it is longer than 1.
    """

    root: LinalgOp
    ops: tuple[LinalgOp, ...]
    loops: Loops
    contiguous: Loop


@dataclass(frozen=True)
class Reduction:
    """A dispatch whose reductions all run along the rows of one result: sums, normalisations, matrix times vector.

    Attributes:
        first: The first reduction.
        root: The op that makes the result.
        ops: All ops in program order.
        parallel: The root's loops that no reduction runs along, named by their positions.
    """

    first: LinalgOp
    root: LinalgOp
    ops: tuple[LinalgOp, ...]
    parallel: Loops

    @cached_property
    def rows(self) -> Loops:
        """The loops longer than 1 that no reduction runs along."""
        return tuple(loop for loop in self.parallel if loop.extent > 1)

    @cached_property
    def recomputable(self) -> tuple[LinalgOp, ...]:
        """The element-wise ops that make no result; none where IREE's pass cannot rematerialise them."""
        between = tuple(op for op in self.ops if op.kind is OpKind.ELEMENTWISE and op is not self.root)
        generic = all(op.name == "linalg.generic" for op in self.ops if op.kind is not OpKind.FILL)
        return between if generic else ()

    @cached_property
    def in_strides(self) -> bool:
        """Whether any reduction walks its largest input in strides; vectors then lie across rows, one row per lane."""
        return any(op.reduces_in_strides for op in self.ops)

    @property
    def fills(self) -> tuple[LinalgOp, ...]:
        """The fills, which initialise the reductions."""
        return tuple(op for op in self.ops if op.kind is OpKind.FILL)


@dataclass(frozen=True)
class SeveralResults:
    """A dispatch that stores the results of several ops.

    Attributes:
        root: The last op; it reads the others, directly or through further ops.
        parallel: The root's loops that divide every stored result, named by their positions.
        stored: The ops whose results are stored, the root among them.
        between: The other ops, fills aside.
    """

    root: LinalgOp
    parallel: Loops
    stored: tuple[LinalgOp, ...]
    between: tuple[LinalgOp, ...]

    @property
    def copied(self) -> tuple[LinalgOp, ...]:
        """The stored ops whose results need a copy, as they have the type of a later one.

        IREE merges equal ``tensor.empty`` ops, and bufferization writes in place into only one result of each.
        """
        later = [self.stored[number + 1 :] for number in range(len(self.stored))]
        types = [{op.outputs[0].tensor for op in ops} for ops in later]
        return tuple(op for op, known in zip(self.stored, types, strict=True) if op.outputs[0].tensor in known)


@dataclass(frozen=True)
class Attention:
    """Two contractions with a softmax between them: scores of queries and keys, and sums of values with these weights.

    Attributes:
        scores: The contraction of queries and keys; the keys are innermost in its result.
        score: The element-wise op on the scores alone, which scales and masks.
        largest: The reduction to the largest score of a row.
        weights: The op that puts the exponentials of a row's scores in their place, and sums them.
        values: The contraction that sums over the keys.
        root: The element-wise op on its result, which makes the result of the dispatch.
        fills: What initialises contractions and reductions.
        others: The loops that all ops walk beside the rows, e.g. heads.
        rows: The loop of the queries.
        keys: The loop of the keys.
        columns: The loop of the result's contiguous dimension: features of a value.
        reduction: The loop of the features of queries and keys.
    """

    scores: LinalgOp
    score: LinalgOp
    largest: LinalgOp
    weights: LinalgOp
    values: LinalgOp
    root: LinalgOp
    fills: tuple[LinalgOp, ...]
    others: Loops
    rows: Loop
    keys: Loop
    columns: Loop
    reduction: Loop
