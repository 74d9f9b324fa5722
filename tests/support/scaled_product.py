"""A product by weights in a file, with scaled columns: weights that are computed while a program is loaded."""

from __future__ import annotations

from pathlib import Path

import iree.runtime as rt
import numpy as np

SIZE = 2048
ROWS, MATRIX, VECTOR = f"tensor<4x{SIZE}xf32>", f"tensor<{SIZE}x{SIZE}xf32>", f"tensor<{SIZE}xf32>"
PRODUCT = f"""
util.global private @weights = #flow.parameter.named<"model"::"weights"> : {MATRIX}
util.global private @numbers = #flow.parameter.named<"model"::"numbers"> : {VECTOR}
func.func @main(%image: {ROWS}) -> {ROWS} {{
  %weights = util.global.load @weights : {MATRIX}
  %numbers = util.global.load @numbers : {VECTOR}
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {ROWS}
  %start = linalg.fill ins(%zero : f32) outs(%empty : {ROWS}) -> {ROWS}
  %sums = linalg.matmul ins(%image, %weights : {ROWS}, {MATRIX}) outs(%start : {ROWS}) -> {ROWS}
"""


def scaled(value: str, kind: str) -> str:
    """Return ops that scale the columns of a value by numbers."""
    return f"""
  %into = tensor.empty() : {kind}
  %scaled = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins({value}, %numbers : {kind}, {VECTOR}) outs(%into : {kind}) {{
  ^bb0(%x: f32, %n: f32, %o: f32):
    %y = arith.mulf %x, %n : f32
    linalg.yield %y : f32
  }} -> {kind}"""


SCALED = f"""{PRODUCT}{scaled("%sums", ROWS)}
  return %scaled : {ROWS}
}}"""


def write_weights(path: Path) -> None:
    """Write the weights and the numbers that the programs read."""
    rng, sizes = np.random.default_rng(0), {"weights": (SIZE, SIZE), "numbers": (SIZE,)}
    rt.save_archive_file({name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}, path)
