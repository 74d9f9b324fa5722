"""Programs with a value that others read beside one op, which reads the value whole or in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import iree.runtime as rt
import numpy as np

ROWS, COLUMNS = 6, 8
TEXT = """
#all = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<6x8xf32>) -> ({results}) {{
  %one = arith.constant 1.0 : f32
  %two = arith.constant 2.0 : f32
  %space = tensor.empty() : tensor<6x8xf32>
  %y = linalg.generic {{indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}}
    ins(%x : tensor<6x8xf32>) outs(%space : tensor<6x8xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %more = arith.addf %a, %one : f32
    linalg.yield %more : f32
  }} -> tensor<6x8xf32>{between}
  %place = tensor.empty() : tensor<{shape}xf32>
  %part = linalg.generic {{indexing_maps = [affine_map<{read}>, #all], iterator_types = ["parallel", "parallel"]}}
    ins({value} : tensor<6x8xf32>) outs(%place : tensor<{shape}xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %twice = arith.mulf %a, %two : f32
    linalg.yield %twice : f32
  }} -> tensor<{shape}xf32>
  return {returned} : {results}
}}
"""
NEGATED = """
  %z = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<6x8xf32>) outs(%space : tensor<6x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %minus = arith.negf %a : f32
    linalg.yield %minus : f32
  } -> tensor<6x8xf32>"""
WINDOWED = """
#all = affine_map<(n, c, i, j) -> (n, c, i, j)>
func.func @main(%x: tensor<1x3x6x8xf32>) -> (tensor<1x3x6x8xf32>, tensor<1x3x3x4xf32>) {{
  %zero = arith.constant 0.0 : f32
  %space = tensor.empty() : tensor<1x3x6x8xf32>
  %y = linalg.generic {{indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
    ins(%x : tensor<1x3x6x8xf32>) outs(%space : tensor<1x3x6x8xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %twice = arith.addf %a, %a : f32
    linalg.yield %twice : f32
  }} -> tensor<1x3x6x8xf32>
  %taps = {taps}
  %place = tensor.empty() : tensor<1x3x3x4xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%place : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  %part = linalg.{op} {{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}}
    ins(%y, %taps : tensor<1x3x6x8xf32>, {kind}) outs(%zeros : tensor<1x3x3x4xf32>) -> tensor<1x3x3x4xf32>
  %other = linalg.generic {{indexing_maps = [#all, #all],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
    ins(%y : tensor<1x3x6x8xf32>) outs(%space : tensor<1x3x6x8xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %minus = arith.negf %a : f32
    linalg.yield %minus : f32
  }} -> tensor<1x3x6x8xf32>
  return %other, %part : tensor<1x3x6x8xf32>, tensor<1x3x3x4xf32>
}}
"""
DEPTHWISE = WINDOWED.format(
    op="depthwise_conv_2d_nchw_chw",
    taps="arith.constant dense<[[[1.0]], [[2.0]], [[3.0]]]> : tensor<3x1x1xf32>",
    kind="tensor<3x1x1xf32>",
)
"""A depthwise convolution with one tap and a stride, beside another op that reads its image."""
POOLED = WINDOWED.format(op="pooling_nchw_sum", taps="tensor.empty() : tensor<1x1xf32>", kind="tensor<1x1xf32>")
"""A pooling with one tap and a stride, as feature pyramids end in, beside another op that reads its image."""

SLICED = """
func.func @main(%x: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<3x4xf32>) {
  %y = arith.addf %x, %x : tensor<6x8xf32>
  %slice = tensor.extract_slice %y[0, 1] [3, 4] [2, 2] : tensor<6x8xf32> to tensor<3x4xf32>
  %part = arith.negf %slice : tensor<3x4xf32>
  return %y, %part : tensor<6x8xf32>, tensor<3x4xf32>
}
"""
"""A slice with strides, which IREE makes no generic op of."""


@dataclass(frozen=True)
class ReadProgram:
    """A program, and what it computes.

    Attributes:
        text: The program, of one input.
        shape: The input's shape.
        expected: Returns its results.
    """

    text: str
    shape: tuple[int, ...]
    expected: Callable[[np.ndarray], tuple[np.ndarray, ...]]

    def input(self) -> np.ndarray:
        """Return small whole numbers, of which all results are exact."""
        return np.random.default_rng(0).integers(-4, 5, self.shape).astype(np.float32)

    def is_right(self, vmfb: bytes) -> bool:
        """Say whether the compiled program makes the expected results."""
        config = rt.Config("local-sync")
        module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, vmfb), config)
        found = module["main"](self.input())
        results = [np.array(one.to_host()) for one in (found if isinstance(found, tuple) else (found,))]
        return all(map(np.array_equal, results, self.expected(self.input())))


def reading(
    read: str, shape: str, part: Callable[[np.ndarray], np.ndarray], *, between: str = "", shared: bool = True
) -> ReadProgram:
    """Return a program that returns ``y = x + 1``, and twice what one op reads of that, or of what is made of it.

    Args:
        read: Indexing map of the read.
        shape: Shape of what is read.
        part: Returns what is read of ``y``.
        between: Ops that make ``%z`` of ``y``, which is read then.
        shared: Whether the program returns ``y``, too.
    """
    kinds = [f"tensor<{shape}xf32>"] if not shared else ["tensor<6x8xf32>", f"tensor<{shape}xf32>"]
    text = TEXT.format(
        results=", ".join(kinds),
        returned="%y, %part" if shared else "%part",
        between=between,
        value="%z" if between else "%y",
        read=read,
        shape=shape,
    )

    def expected(x: np.ndarray) -> tuple[np.ndarray, ...]:
        y = x + np.float32(1)
        return (y, 2 * part(y)) if shared else (2 * part(y),)

    return ReadProgram(text, (ROWS, COLUMNS), expected)


IN_PART = {
    "rows": reading("(i, j) -> (i * 2, j)", "3x8", lambda y: y[::2]),
    "from the second row on": reading("(i, j) -> (i + 1, j)", "5x8", lambda y: y[1:]),
    "first column": reading("(i, j) -> (i, 0)", "6x8", lambda y: np.repeat(y[:, :1], COLUMNS, axis=1)),
    "transposed": reading("(i, j) -> (j * 3, i)", "8x2", lambda y: y[::3].T),
    "depthwise convolution": ReadProgram(
        DEPTHWISE,
        (1, 3, 6, 8),
        lambda x: (-2 * x, 2 * x[:, :, ::2, ::2] * np.array([1, 2, 3], np.float32).reshape(3, 1, 1)),
    ),
    "pooling": ReadProgram(POOLED, (1, 3, 6, 8), lambda x: (-2 * x, 2 * x[:, :, ::2, ::2])),
    "behind another op": reading("(i, j) -> (i * 2, j)", "3x8", lambda y: -y[::2], between=NEGATED),
}
"""Programs with a value that is read in part beside others that read the value, by what is read, or what reads."""
WHOLE = {
    "whole": reading("(i, j) -> (i, j)", "6x8", lambda y: y),
    "transposed": reading("(i, j) -> (j, i)", "8x6", lambda y: y.T),
    "slice": ReadProgram(SLICED, (ROWS, COLUMNS), lambda x: (x + x, -(x + x)[::2, 1::2])),
    "alone": reading("(i, j) -> (i * 2, j)", "3x8", lambda y: y[::2], shared=False),
}
"""Programs whose values are read whole, by a slice too, or in part by the only reader."""
