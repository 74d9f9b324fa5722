"""Linear ops with constant weights: sums of products, such as convolutions of every kind and products of matrices."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import producer, source_of
from mlir_sched.program.rewrites.constant_values import is_constant, scalar_constant
from mlir_sched.program.rewrites.convolution_ops import is_static_f32
from mlir_sched.program.rewrites.linalg_ops import loops_of, maps_of
from mlir_sched.program.rewrites.walked_program import WalkedProgram

INIT = 2
"""Which operand of a linear op its sums start with: the last one, behind the two factors."""


@dataclass(frozen=True)
class Linear:
    """A linear op.

    Attributes:
        op: The op; its operands are two factors and what the sums start with.
        weights: Which operand is constant, 0 or 1.
        loops: The loop that walks each dimension of each operand; None where several do, or none.
    """

    op: Any
    weights: int
    loops: tuple[tuple[int | None, ...], ...]

    @property
    def image(self) -> int:
        """Which operand is the factor that is not constant."""
        return 1 - self.weights

    def factors(self, weights: Any, image: Any) -> list[Any]:
        """Return other weights and another image in the order of the op's operands."""
        return [weights, image] if self.weights == 0 else [image, weights]

    @property
    def summed(self) -> frozenset[int]:
        """The loops that sum."""
        return frozenset(range(maps_of(self.op)[0].n_dims)) - {*self.loops[INIT]}

    @property
    def sums_weights(self) -> bool:
        """Whether every loop that sums walks along weights."""
        return self.summed <= {*self.loops[self.weights]}

    def walked(self, place: int, sizes: Sequence[int]) -> set[int | None]:
        """Return the loops that walk a factor of an operand along its dimensions of more than one element.

        Args:
            place: Which operand.
            sizes: Elements of the factor along every dimension of the operand.
        """
        return {loop for loop, size in zip(self.loops[place], sizes, strict=True) if size > 1}

    def fits(self, place: int, sizes: Sequence[int]) -> bool:
        """Say whether weights may be multiplied by a factor of an operand in its place; arguments as above."""
        return self.walked(place, sizes) <= {*self.loops[self.weights]}

    def copies(self, needed: Collection[int | None]) -> tuple[Any, ...]:
        """Return the ops that repeat or transpose the weights, from the linear op back, behind all of these loops."""
        found, op = list[Any](), producer(self.op.operands[self.weights])
        while (dims := source_loops(op)) is not None and {*needed} <= {*_at(self.weight_loops(found), dims)}:
            found.append(op)
            op = producer(op.operands[0])
        return tuple(found)

    def weight_loops(self, copies: Sequence[Any]) -> tuple[int | None, ...]:
        """Return the loop that walks each dimension of the weights in front of copies."""
        loops = self.loops[self.weights]
        for copy in copies:
            loops = _at(loops, source_loops(copy) or ())
        return loops


def linear_ops(program: WalkedProgram) -> list[Linear]:
    """Return the linear ops of a program, in its order."""
    return [each for op in program.ops if (each := linear(op, program.constants))]


def linear(op: Any, globals_: frozenset[str]) -> Linear | None:
    """Return an op as a linear op of static f32 tensors with constant weights; None for any other op.

    Args:
        op: The op.
        globals_: Symbols of the globals that are never written.
    """
    if not multiplies_and_adds(op):
        return None
    constant = [place for place in range(INIT) if is_constant(source_of(op.operands[place], is_copy), globals_)]
    loops = tuple(map(loops_of, maps_of(op)))
    if len(constant) != 1 or None in (*loops[constant[0]], *loops[INIT]):
        return None
    return Linear(op, constant[0], loops)


def _at(loops: Sequence[int | None], dims: Sequence[int]) -> tuple[int | None, ...]:
    return tuple(loops[dim] for dim in dims)


def source_loops(op: Any) -> list[int] | None:
    """Return which dimension of its result an op repeats each dimension of its only input along, or moves it to.

    Returns:
        None for an op that does anything else than to copy elements.
    """
    if not op.name.startswith("linalg.") or len(op.operands) != 2 or len(op.results) != 1:
        return None
    (*inner, end), maps = op.regions[0].blocks[0], maps_of(op)
    if inner or not maps or end.operation.operands[0] != op.regions[0].blocks[0].arguments[0]:
        return None
    source, result = maps
    loops = [*dict.fromkeys(loop for loop in loops_of(source) if loop is not None)]
    return loops if len(loops) == len(source.results) and result == ir.AffineMap.get_identity(result.n_dims) else None


def is_copy(op: Any) -> bool:
    """Say whether an op does nothing else than to copy elements (:func:`source_loops`)."""
    return source_loops(op) is not None


def starts_with_zeros(op: Any) -> bool:
    """Say whether the sums of a linear op start with zeros."""
    fill = producer(op.operands[INIT])
    return fill is not None and fill.name == "linalg.fill" and scalar_constant(fill.operands[0]) == 0


def multiplies_and_adds(op: Any) -> bool:
    """Say whether an op on static tensors of f32 adds products of elements of its two factors."""
    if not op.name.startswith("linalg.") or len(op.operands) != INIT + 1 or len(op.results) != 1:
        return False
    if not all(map(is_static_f32, op.operands)):
        return False
    left, right, total = op.regions[0].blocks[0].arguments
    inner = [one.operation for one in op.regions[0].blocks[0]]
    if [one.name for one in inner] != ["arith.mulf", "arith.addf", "linalg.yield"]:
        return False
    product, added, end = inner
    operands = {*product.operands} == {left, right} and {*added.operands} == {product.result, total}
    return operands and end.operands[0] == added.result
