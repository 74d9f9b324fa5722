"""Programs of one product or convolution with weights that only the compiler has to know, for the tests of rewrites."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    """A product of rows and weights.

    Attributes:
        op: Its linalg op.
        rows, weights, result: Shapes of its operands.
        attributes: Attributes of the op.
        order: Order of the dims in which the program stores the weights.
        argument: Whether the weights are an argument.
    """

    op: str
    rows: tuple[int, ...]
    weights: tuple[int, ...]
    result: tuple[int, ...]
    attributes: str = ""
    order: tuple[int, ...] = ()
    argument: bool = False

    def text(self) -> str:
        """Return the program; its weights are whole numbers from -5 to 5 that only the compiler has to know."""
        rows, weights, result = map(tensor_of, (self.rows, self.weights, self.result))
        order = self.order or tuple(range(len(self.weights)))
        stored_shape = [0] * len(order)
        for place, dim in enumerate(order):
            stored_shape[dim] = self.weights[place]
        stored = tensor_of(stored_shape)
        dims = ", ".join(f"d{d}" for d in range(len(order)))
        kinds = ", ".join(['"parallel"'] * len(order))
        indices = "\n".join(f"    %i{d} = linalg.index {d} : index" for d in range(len(order)))
        steps = "\n".join(
            f"    %m{d} = arith.muli %s{d}, %c{d} : index\n    %s{d + 1} = arith.addi %m{d}, %i{d} : index"
            for d in range(len(order))
        )
        factors = "\n".join(f"    %c{d} = arith.constant {3 + 2 * d} : index" for d in range(len(order)))
        value = f"""
  %none = tensor.empty() : {stored}
  %stored = linalg.generic {{indexing_maps = [affine_map<({dims}) -> ({dims})>], iterator_types = [{kinds}]}}
    outs(%none : {stored}) {{
  ^bb0(%unused: f32):
{indices}
{factors}
    %s0 = arith.constant 1 : index
{steps}
    %eleven = arith.constant 11 : index
    %rest = arith.remui %s{len(order)}, %eleven : index
    %whole = arith.index_cast %rest : index to i32
    %float = arith.sitofp %whole : i32 to f32
    %five = arith.constant 5.0 : f32
    %number = arith.subf %float, %five : f32
    linalg.yield %number : f32
  }} -> {stored}
  %empty = tensor.empty() : {weights}
  %weights = linalg.transpose ins(%stored : {stored}) outs(%empty : {weights}) permutation = {list(order)}"""
        if self.argument:
            value = ""
        arguments = f"%rows: {rows}, %init: {result}" + (f", %weights: {weights}" if self.argument else "")
        return f"""
func.func @main({arguments}) -> {result} {{{value}
  %result = linalg.{self.op} {self.attributes}
    ins(%rows, %weights : {rows}, {weights}) outs(%init : {result}) -> {result}
  return %result : {result}
}}
"""

    def inputs(self) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        return [generator.integers(-4, 5, shape).astype(np.float32) for shape in (self.rows, self.result)]


def tensor_of(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"
