"""Products of one row and the element-wise ops behind them, such as the gates of a step, as one site."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import arith, tensor

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.linalg_ops import (
    collapse,
    copied_body,
    dims_map,
    expand,
    generic,
    index,
    product_and_sum,
    slice_of,
    with_unit_dims,
)
from mlir_sched.program.rewrites.placed.links import Link, Made
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedSite
from mlir_sched.program.rewrites.recurrent.flat import ElementRun, is_flat_elementwise, read_by, size_of
from mlir_sched.program.rewrites.recurrent.row_product import RowProduct

Given = Mapping[Any, Any]
"""Values of a program, and what stands for each."""


@dataclass(frozen=True)
class Cell(PlacedSite):
    """Products of one row, and the flat ops between them and the results that others read.

    Attributes:
        op: The last op.
        products: The products.
        flat: The flat ops, in the order of the program.
        outputs: The element-wise ops of these whose results are replaced, in the order of the program: the last op, and
            others that it is computed from, with as many elements.
    """

    op: Any
    products: tuple[RowProduct, ...]
    flat: tuple[Any, ...]
    outputs: tuple[Any, ...]

    @cached_property
    def ops(self) -> list[Any]:
        """All ops, the last one first, others behind the first op that reads them."""
        inner = {*self.flat, *(op for product in self.products for op in product.compared)}
        found = [self.op]
        for op in found:
            found += dict.fromkeys(made for made in map(producer, op.operands) if made in inner and made not in found)
        return found

    @cached_property
    def links(self) -> list[Link]:
        """All values that its ops read."""
        return [Link(op, place) for op in self.ops for place in range(len(op.operands))]

    @cached_property
    def leaves(self) -> list[Link]:
        """The values that the replacement is computed from, each as the first of the ops reads it."""
        runs = [run for op in self.outputs for run in self.runs(op)]
        found = {run.value for run in runs} | {value for run in runs for value, _ in run.varying}
        found |= {value for product in self.products for value in (product.image, product.weights)}
        found -= {*self._products, *(op.results[0] for op in self.outputs)}
        first = {link.value: link for link in reversed(self.links)}
        return [link for value, link in reversed(first.items()) if value in found]

    @property
    def results(self) -> list[Made]:
        """The results that others read."""
        return [Made(op, 0) for op in self.outputs]

    @property
    def built(self) -> tuple[Any, ...]:
        """What its ops read of one another and of the inputs, and which operands are weights."""
        known = {value: -1 - number for number, value in enumerate(self.inputs)}
        known |= {result: number for number, op in enumerate(self.ops) for result in op.results}
        weights = ((known[product.result], product.linear.weights) for product in self.products)
        return *(known.get(link.value) for link in self.links), *sorted(weights)

    @property
    def size(self) -> int:
        """The number of elements of each result."""
        return size_of(self.op.results[0])

    @property
    def sums(self) -> list[ElementRun]:
        """The runs of results of products that it reads, each once."""
        runs = dict.fromkeys(run for op in self.outputs for run in self.runs(op))
        return [run for run in runs if run.value in self._products]

    @property
    def weight_bytes(self) -> int:
        """Bytes of the weights that it reads."""
        return sum(4 * self.size * size_of(self._products[run.value].image) for run in self.sums)

    def runs(self, output: Any) -> list[ElementRun]:
        """Return the runs that a result is computed from: of products, of earlier results, and of other values."""
        ends = {*self._products, *(op.results[0] for op in self.outputs if op != output)}
        found, stack = dict[ElementRun, None](), read_by(ElementRun(output.results[0], 0))[::-1]
        while stack:
            run = stack.pop()
            if run in found:
                continue
            behind = self._read_by(run, ends)
            stack += behind[::-1]
            found |= {} if behind else {run: None}
        return list(found)

    def computed(self, given: Given) -> list[Any]:
        """Return the results as one dispatch, given what stands for the values."""
        every = [run for op in self.outputs for run in self.runs(op)]
        parts = {run: self._part(run, given) for run in every if run.value in given}
        rows = {run: self._rows(run, given) for run in self.sums}
        kind = ir.RankedTensorType.get([self.size], ir.F32Type.get())
        attributes = {"operandSegmentSizes": ir.DenseI32ArrayAttr.get([0, 0])}
        types = [kind] * len(self.outputs)
        region = ir.Operation.create("flow.dispatch.region", results=types, attributes=attributes, regions=2)
        with ir.InsertionPoint(region.regions[0].blocks.append()):
            parts |= {run: product_and_sum(image, weights, "k", "nk", "n") for run, (image, weights) in rows.items()}
            for op in self.outputs:
                parts[ElementRun(op.results[0], 0)] = self._result(op, parts)
            ir.Operation.create("flow.return", operands=[parts[ElementRun(op.results[0], 0)] for op in self.outputs])
        shapes = [list(op.results[0].type.shape) for op in self.outputs]
        return [_shaped(result, shape) for result, shape in zip(region.results, shapes, strict=True)]

    @cached_property
    def _products(self) -> dict[Any, RowProduct]:
        """The products by their results."""
        return {product.result: product for product in self.products}

    @cached_property
    def _inner(self) -> frozenset[Any]:
        return frozenset(self.ops)

    def _read_by(self, run: ElementRun, ends: Collection[Any]) -> list[ElementRun]:
        """Return the runs that a run is computed from, by one op; none where that is not for the replacement to do."""
        return [] if run.value in ends or producer(run.value) not in self._inner else read_by(run)

    def _part(self, run: ElementRun, given: Given) -> Any:
        """Return a run as a tensor of its own."""
        value = given[run.value]
        if run.is_single:
            return with_unit_dims(value, [])
        flat = collapse(value, [range(value.type.rank)]) if value.type.rank > 1 else value
        first = index(run.first) if run.varying else run.first
        for place, step in run.varying:
            first = arith.addi(first, arith.muli(given[place], index(step)))
        return slice_of(flat, [first], [self.size])

    def _rows(self, run: ElementRun, given: Given) -> tuple[Any, Any]:
        """Return what sums are computed from: the row, and the weights of each in a row of their own."""
        product = self._products[run.value]
        image, weights = given[product.image], given[product.weights]
        return with_unit_dims(image, [size_of(image)]), product.rows_of(weights, run.first, self.size)

    def _result(self, output: Any, parts: Mapping[ElementRun, Any]) -> Any:
        """Return a result, computed by one op from the runs that it needs."""
        runs = self.runs(output)
        inputs = [parts[run] for run in runs]
        maps = [dims_map(1, range(value.type.rank)) for value in inputs]
        empty = tensor.empty([self.size], ir.F32Type.get())

        def body(*scalars: Any) -> Any:
            known = dict(zip(runs, scalars, strict=False))
            return _element(ElementRun(output.results[0], 0), known)

        return generic(inputs, empty, [*maps, dims_map(1, [0])], ["parallel"], body)


def _shaped(vector: Any, shape: Sequence[int]) -> Any:
    """Return the elements of a vector as a tensor of a shape."""
    return vector if len(shape) == 1 else expand(vector, [range(len(shape))], shape)


def _element(run: ElementRun, known: dict[ElementRun, Any]) -> Any:
    """Return the element of a run, computed from those that are known."""
    if run not in known:
        op = producer(run.value)
        read = [_element(each, known) for each in read_by(run)]
        known[run] = copied_body(op, [*read, None]) if is_flat_elementwise(op) else read[0]
    return known[run]
