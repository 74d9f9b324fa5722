"""Products of one row with constant weights: every weight is read once, for one term of one sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import slice_of, transposed, with_unit_dims
from mlir_sched.program.rewrites.linear.linear_op import INIT, Linear, starts_with_zeros
from mlir_sched.program.rewrites.recurrent.flat import size_of


@dataclass(frozen=True)
class RowProduct:
    """A product of one row.

    Attributes:
        linear: The linear op.
        column: The loop over the results.
        term: The loop over the terms of a sum.
    """

    linear: Linear
    column: int
    term: int

    @property
    def op(self) -> Any:
        """The linear op."""
        return self.linear.op

    @property
    def result(self) -> Any:
        """The sums."""
        return self.op.results[0]

    @property
    def image(self) -> Any:
        """The row."""
        return self.op.operands[self.linear.image]

    @property
    def copies(self) -> tuple[Any, ...]:
        """The ops that move weights in front of it, the nearest one first."""
        return self.linear.copies((self.column, self.term))

    @property
    def weights(self) -> Any:
        """The weights in front of these ops."""
        return self.copies[-1].operands[0] if self.copies else self.op.operands[self.linear.weights]

    @property
    def compared(self) -> list[Any]:
        """The ops that make it what it is: itself, the zeros that its sums start with, and what moves the weights."""
        fill = producer(self.op.operands[INIT])
        return [self.op, fill, producer(fill.operands[0]), *self.copies]

    def rows_of(self, weights: Any, first: int, number: int) -> Any:
        """Return the weights of some results, a row for each.

        Args:
            weights: All weights, as :attr:`weights` has them.
            first, number: Which results.
        """
        loops = [loop for loop in self.linear.weight_loops(self.copies) if loop in (self.column, self.term)]
        sizes = {self.column: size_of(self.result), self.term: size_of(self.image)}
        matrix = with_unit_dims(weights, [sizes[loop] for loop in loops])
        rows = transposed(matrix, [loops.index(self.column), loops.index(self.term)])
        return slice_of(rows, [first, 0], [number, sizes[self.term]])


def row_product(begin: Linear) -> RowProduct | None:
    """Return a linear op as a product of one row whose sums start with zeros; None for any other one."""
    op = begin.op
    if not starts_with_zeros(op):
        return None
    longer = [
        [loop for loop, size in zip(loops, operand.type.shape, strict=True) if size > 1]
        for loops, operand in zip(begin.loops, op.operands, strict=True)
    ]
    image, weights, result = longer[begin.image], longer[begin.weights], longer[INIT]
    loops = [loop for loop in (*image, *result) if loop is not None]
    if [len(image), len(result), len(weights), len({*loops})] != [1, 1, 2, 2] or {*weights} != {*loops}:
        return None
    term, column = loops
    return RowProduct(begin, column, term)
