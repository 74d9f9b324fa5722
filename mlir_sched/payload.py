"""The payload as plain data: the linalg ops of one dispatch, their loops and how they read and write tensors.

Filled by ``tasks/worker/analysis.py`` from IR; read by transform modules, legality checks and features, which need no
MLIR.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise, zip_longest

ELEMENT_BITS = {
    "f64": 64, "f32": 32, "f16": 16, "bf16": 16, "f8E4M3FN": 8, "f8E5M2": 8, "f8E4M3FNUZ": 8, "f8E5M2FNUZ": 8,
    "i64": 64, "i32": 32, "i16": 16, "i8": 8, "i4": 4, "i2": 2, "i1": 8,
    "ui64": 64, "ui32": 32, "ui16": 16, "ui8": 8, "index": 64, "complex<f32>": 64,
}  # fmt: skip
"""Bits that an element of a tensor takes in memory, by MLIR type. IREE packs types narrower than a byte, but ``i1``."""
ELEMENT_BYTES = {name: -(-bits // 8) for name, bits in ELEMENT_BITS.items()}
"""Bytes of a scalar of its own in memory, by MLIR type."""

PAD = "tensor.pad"
"""Name of the op that pads a tensor."""


class OpKind(StrEnum):
    """The op classes that transform modules tell apart."""

    FILL = "fill"
    CONTRACTION = "contraction"
    CONVOLUTION = "convolution"
    REDUCTION = "reduction"
    ELEMENTWISE = "elementwise"
    OTHER = "other"


@dataclass(frozen=True)
class TensorSpec:
    """Shape and MLIR element type of one tensor.

    Attributes:
        element_type: As MLIR writes it, e.g. ``f32``.
        by_value: Whether it is a scalar of a function's signature, passed as a number and not as a buffer.
    """

    shape: tuple[int, ...]
    element_type: str
    by_value: bool = False

    @property
    def elements(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes; the elements of types narrower than a byte are packed."""
        return -(-self.elements * ELEMENT_BITS[self.element_type] // 8)

    @cached_property
    def element_bytes(self) -> int:
        """Size of an element in bytes, at least 1."""
        return ELEMENT_BYTES[self.element_type]


@dataclass(frozen=True)
class LinearExpr:
    """One result of an indexing map: ``sum(coefficients[i] * d_i) + constant``."""

    coefficients: tuple[int, ...]
    constant: int = 0

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """The loops it depends on, ascending."""
        return tuple(i for i, c in enumerate(self.coefficients) if c)

    @cached_property
    def is_dim(self) -> bool:
        """Whether it is exactly one loop index."""
        return self.constant == 0 and len(self.dims) == 1 and self.coefficients[self.dims[0]] == 1


@dataclass(frozen=True)
class Operand:
    """One operand of a linalg op.

    Attributes:
        tensor: Its shape (``()`` for a scalar) and element type.
        indexing_map: One expression per tensor dimension, over the op's loops.
        producer: Index of the op of this dispatch that makes it, or None when it is loaded, a constant or empty.
        padded: Its dimensions that a ``tensor.pad`` of this dispatch makes longer than what is loaded, ascending.
    """

    tensor: TensorSpec
    indexing_map: tuple[LinearExpr, ...]
    producer: int | None = None
    padded: tuple[int, ...] = ()

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """The loops it depends on, ascending."""
        return tuple(sorted({dim for expr in self.indexing_map for dim in expr.dims}))

    @cached_property
    def loops(self) -> tuple[int, ...]:
        """The loop that walks each of its dimensions, in the order of the dimensions, each of which has to have one."""
        return tuple(expr.dims[0] for expr in self.indexing_map)

    @cached_property
    def single_steps(self) -> tuple[tuple[int, int], ...]:
        """The dimensions that one loop walks by single steps, each with this loop."""
        return tuple((dim, expr.dims[0]) for dim, expr in enumerate(self.indexing_map) if expr.is_dim)

    def swapped(self, first: int, second: int) -> tuple[int, ...]:
        """Return the order of its dimensions in which two of them change places."""
        places = {first: second, second: first}
        return tuple(places.get(dim, dim) for dim in range(len(self.indexing_map)))

    def ordered(self, first: int, second: int) -> tuple[int, ...]:
        """Return the order of its dimensions in which the dimension of one loop stands before that of another.

        The two dimensions change places where they have to; each is walked by one loop.
        """
        before, behind = self.loops.index(first), self.loops.index(second)
        return self.swapped(before, behind) if before > behind else tuple(range(len(self.loops)))

    @cached_property
    def steps(self) -> tuple[tuple[tuple[int, int], ...], ...]:
        """Per dimension, the loops it depends on, each with how far one iteration moves along it."""
        return tuple(tuple((dim, abs(expr.coefficients[dim])) for dim in expr.dims) for expr in self.indexing_map)

    def touched(self, tile: Sequence[int]) -> list[int]:
        """Return how many elements it reads along each dimension while loop ``i`` runs over ``tile[i]`` iterations."""
        if self.is_projected_permutation:
            return [int(tile[loop]) for loop in self.loops]
        lengths = []
        for steps in self.steps:
            length = 1
            for loop, step in steps:
                length += step * (tile[loop] - 1)
            lengths.append(length)
        return lengths

    def footprint_bytes(self, tile: Sequence[int]) -> int:
        """Return the bytes it touches while each loop ``i`` runs over ``tile[i]`` iterations."""
        if self.is_projected_permutation:
            return self.tensor.element_bytes * math.prod([tile[loop] for loop in self.loops])
        return self.tensor.element_bytes * math.prod(self.touched(tile))

    @cached_property
    def is_projected_permutation(self) -> bool:
        """Whether each of its dimensions is walked by one loop, and no loop walks two."""
        return all(expr.is_dim for expr in self.indexing_map) and len(self.dims) == len(self.indexing_map)

    def is_padded_along(self, loop: int) -> bool:
        """Say whether a loop walks a padded dimension."""
        return any(loop in self.indexing_map[dim].dims for dim in self.padded)

    def step(self, loop: int) -> int:
        """Return the largest step of one iteration of a loop along any dimension, in elements."""
        return max((abs(expr.coefficients[loop]) for expr in self.indexing_map), default=0)


@dataclass(frozen=True)
class ContractionDims:
    """The loops of a contraction by role, each ascending (as MLIR's ``inferContractionDims``)."""

    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]


@dataclass(frozen=True)
class ConvolutionDims:
    """The loops of a convolution by role, each ascending (as MLIR's ``inferConvolutionDims``).

    Attributes:
        batch: Loops over the image alone, outside of its windows.
        output_image: Loops that place the window on the image.
        output_channel: Loops over the filter alone.
        filter_loop: Loops over the window: summed, in the filter and in the image's sums of loops.
        input_channel: Loops that are summed outside of the windows.
        depth: Loops over image, filter and result: groups, the channel of a depthwise convolution, and the phases of a
            transposed convolution, which MLIR does not name.
    """

    batch: tuple[int, ...]
    output_image: tuple[int, ...]
    output_channel: tuple[int, ...]
    filter_loop: tuple[int, ...]
    input_channel: tuple[int, ...]
    depth: tuple[int, ...]


@dataclass(frozen=True)
class LinalgOp:
    """One structured op of a dispatch.

    Attributes:
        index: Position among the dispatch's linalg ops, in program order (the order a transform match returns).
        name: MLIR op name, e.g. ``linalg.matmul``.
        iterator_types: ``parallel`` or ``reduction`` per loop.
        extents: Trip count per loop, >= 1.
        body: Names of the scalar ops of its body, in order, without the yield.
    """

    index: int
    name: str
    kind: OpKind
    iterator_types: tuple[str, ...]
    extents: tuple[int, ...]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    body: tuple[str, ...]

    @cached_property
    def operands(self) -> tuple[Operand, ...]:
        """Its inputs, then its outputs."""
        return (*self.inputs, *self.outputs)

    @cached_property
    def parallel_dims(self) -> tuple[int, ...]:
        """Its parallel loops, ascending."""
        return tuple(i for i, kind in enumerate(self.iterator_types) if kind == "parallel")

    @cached_property
    def reduction_dims(self) -> tuple[int, ...]:
        """Its reduction loops, ascending."""
        return tuple(i for i, kind in enumerate(self.iterator_types) if kind == "reduction")

    @cached_property
    def contiguous_dim(self) -> int | None:
        """Its loop that walks the result's contiguous dimension; None for a scalar or a computed index."""
        indexing_map = self.outputs[0].indexing_map
        if not indexing_map or not indexing_map[-1].is_dim:
            return None
        return indexing_map[-1].dims[0]

    @cached_property
    def element_bytes(self) -> int:
        """Size of an element of its (first) result."""
        return self.outputs[0].tensor.element_bytes

    @cached_property
    def reduces(self) -> bool:
        """Whether it is a reduction, contraction or convolution with a reduction loop longer than 1."""
        kinds = (OpKind.REDUCTION, OpKind.CONTRACTION, OpKind.CONVOLUTION)
        return self.kind in kinds and any(self.extents[d] > 1 for d in self.reduction_dims)

    @cached_property
    def reads_loop_index(self) -> bool:
        """Whether its body computes with loop indices."""
        return "linalg.index" in self.body

    @cached_property
    def gathers(self) -> bool:
        """Whether it reads elements at computed places, and one loop walks each dimension of all else."""
        known = all(operand.is_projected_permutation for operand in self.operands)
        whole = known and len(self.outputs[0].loops) == len(self.extents)
        return whole and "tensor.extract" in self.body and not self.reduction_dims

    @cached_property
    def transposes(self) -> bool:
        """Whether an operand's dimensions are in another order than its loops."""
        return any(list(o.dims) != [d for expr in o.indexing_map for d in expr.dims] for o in self.operands)

    @cached_property
    def takes_f16_maxima(self) -> bool:
        """Whether it may take maxima of f16 numbers."""
        f16 = any(operand.tensor.element_type == "f16" for operand in self.operands)
        return f16 and "arith.maximumf" in self.body

    @cached_property
    def has_windows(self) -> bool:
        """Whether some input is read through sums of loops, as a convolution slides a window over its image."""
        return bool(self.sums_of_loops)

    @cached_property
    def sums_of_loops(self) -> tuple[LinearExpr, ...]:
        """How its inputs are read where not by one loop alone, as a convolution reads the pixels of its windows."""
        read = (expr for operand in self.inputs for expr in operand.indexing_map)
        return tuple(expr for expr in read if expr.dims and not expr.is_dim)

    @cached_property
    def largest_input(self) -> Operand:
        """Its (first) input of the most elements."""
        return max(self.inputs, key=lambda operand: operand.tensor.elements)

    @cached_property
    def reduces_in_strides(self) -> bool:
        """Whether it reduces, and no reduction loop walks the contiguous dimension of its largest input."""
        last = self.largest_input.indexing_map[-1:]
        return self.reduces and not any(d in self.reduction_dims for expr in last for d in expr.dims)

    def result_like(self, tensor: TensorSpec) -> Operand:
        """Return its (first) result of a shape and type; its first one if there is none."""
        first, *others = self.outputs
        return next((result for result in others if result.tensor == tensor != first.tensor), first)

    def operand_of(self, producer: int) -> Operand | None:
        """Return its first operand that op ``producer`` of the dispatch makes, or None."""
        return self._produced.get(producer)

    @cached_property
    def _produced(self) -> dict[int | None, Operand]:
        return {operand.producer: operand for operand in reversed(self.operands)}

    @cached_property
    def iterations(self) -> int:
        """Product of its extents."""
        return math.prod(self.extents)

    @cached_property
    def scalar_ops(self) -> int:
        """Scalar operations of one execution: iterations times body length."""
        return self.iterations * len(self.body)

    @cached_property
    def footprint_bytes(self) -> int:
        """Bytes of its operands that one execution touches."""
        return sum(operand.footprint_bytes(self.extents) for operand in self.operands)

    @cached_property
    def contraction_dims(self) -> ContractionDims:
        """The roles of its loops; meaningful only when ``kind`` is CONTRACTION."""
        lhs, rhs, out = (set(operand.dims) for operand in (*self.inputs[:2], self.outputs[0]))
        loops = range(len(self.extents))
        return ContractionDims(
            batch=tuple(d for d in loops if d in lhs and d in rhs and d in out),
            m=tuple(d for d in loops if d in lhs and d not in rhs and d in out),
            n=tuple(d for d in loops if d not in lhs and d in rhs and d in out),
            k=tuple(d for d in loops if d in lhs and d in rhs and d not in out),
        )

    @cached_property
    def image_and_filter(self) -> tuple[Operand, Operand]:
        """The two inputs of a convolution: the input read through windows (the image), and the filter."""
        first, second = self.inputs[:2]
        return (second, first) if first.is_projected_permutation else (first, second)

    @cached_property
    def convolution_dims(self) -> ConvolutionDims:
        """The roles of its loops; meaningful only when ``kind`` is CONVOLUTION."""
        image, kernel = self.image_and_filter
        walked = set(kernel.dims)
        windows = {d for expr in image.indexing_map if not expr.is_dim for d in expr.dims}
        parallel, summed = self.parallel_dims, self.reduction_dims
        return ConvolutionDims(
            batch=tuple(d for d in parallel if d not in walked and d not in windows),
            output_image=tuple(d for d in parallel if d not in walked and d in windows),
            output_channel=tuple(d for d in parallel if d in walked and d not in image.dims),
            filter_loop=tuple(d for d in summed if d in windows),
            input_channel=tuple(d for d in summed if d not in windows),
            depth=tuple(d for d in parallel if d in walked and d in image.dims),
        )


@dataclass(frozen=True)
class Dispatch:
    """The linalg ops of one dispatch, in program order; the last one makes the result.

    Attributes:
        ops: All its linalg ops.
        results: Indices of the ops whose results the dispatch stores, ascending.
        other_ops: Names of the remaining tensor ops that are neither linalg, loads, stores, constants nor empties
            (``tensor.extract_slice`` and the like); transform modules that do not know them skip the dispatch.
    """

    ops: tuple[LinalgOp, ...]
    results: tuple[int, ...]
    other_ops: tuple[str, ...] = ()

    def consumers(self, index: int) -> tuple[LinalgOp, ...]:
        """Return the ops that read the result of op ``index``."""
        return self._consumers[index]

    @cached_property
    def _consumers(self) -> tuple[tuple[LinalgOp, ...], ...]:
        read = [{operand.producer for operand in op.operands} for op in self.ops]
        return tuple(
            tuple(op for op, producers in zip(self.ops, read, strict=True) if made.index in producers)
            for made in self.ops
        )

    @cached_property
    def fills(self) -> tuple[LinalgOp, ...]:
        """The fills, in program order."""
        return tuple(op for op in self.ops if op.kind is OpKind.FILL)

    @cached_property
    def beside_fills(self) -> tuple[LinalgOp, ...]:
        """All other ops, in program order."""
        return tuple(op for op in self.ops if op.kind is not OpKind.FILL)

    @cached_property
    def scalar_ops(self) -> int:
        """Scalar operations of one execution, those on padding included; a fill has none."""
        return sum(op.scalar_ops for op in self.ops)

    @cached_property
    def is_chain(self) -> bool:
        """Whether each op reads the op before it, fills aside: these ops keep their order wherever they are fused."""
        return all(reader in self.consumers(op.index) for op, reader in pairwise(self.beside_fills))

    @property
    def root(self) -> LinalgOp:
        """The op that makes the (last) stored result."""
        return self.ops[self.results[-1]]

    @cached_property
    def main_op(self) -> LinalgOp:
        """The op with most scalar operations, the first of several."""
        return max(self.ops, key=lambda op: op.scalar_ops)


def family_of(dispatch: Dispatch) -> str:
    """Return the family of a dispatch: kind, body and types of its main op.

    A convolution that sums over channels and one that does not (depthwise) are of different families: the first reuses
    every element of the image once per channel of its result.
    """
    op = dispatch.main_op
    types = (operand.tensor.element_type for operand in (*op.inputs, *op.outputs))
    depthwise = op.kind is OpKind.CONVOLUTION and not op.convolution_dims.input_channel
    return " ".join((op.kind, *(["depthwise"] if depthwise else []), *op.body, *types))


def extent_distance(one: Sequence[int], other: Sequence[int]) -> float:
    """Return the sum of the |log2| ratios of the extents of two ops' loops; a loop that one lacks has extent 1."""
    return sum(abs(math.log2(first / second)) for first, second in zip_longest(one, other, fillvalue=1))


def producer_tiles(consumer: LinalgOp, tiles: Sequence[tuple[int, ...]], producer: LinalgOp) -> list[tuple[int, ...]]:
    """Return the producer's iterations that each tile of a direct consumer needs.

    Loops that the consumer does not reach (reductions) keep their full extent.
    """
    operand = consumer.operand_of(producer.index)
    if operand is None:
        return [producer.extents] * len(tiles)
    made = producer.result_like(operand.tensor)
    needed_by = []
    for tile in tiles:
        needed, touched = list(producer.extents), operand.touched(tile)
        for dim, loop in made.single_steps:
            needed[loop] = min(needed[loop], touched[dim])
        needed_by.append(tuple(needed))
    return needed_by
