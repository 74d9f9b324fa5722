"""Programs in which scores of attention are scaled: 5 queries of 2 heads, made by a linear op, and 7 keys."""

from __future__ import annotations

import numpy as np
from scaled_channels import Scaled, stepped

QUERIES = Scaled("matmul", (5, 6), (6, 8), (5, 8), steps=("addf",))
ONE_PRODUCT = Scaled("matmul", (5, 6), (6, 24), (5, 24), steps=("addf",))
KEYS, VALUES = "tensor<2x4x7xf32>", "tensor<2x7x3xf32>"
SHARE = 0.25


def products(case: Scaled = QUERIES, scale: str = "mulf %x, %s") -> str:
    """Return a program whose queries are multiplied by keys; the scores are ``%scores``, and scaled ``%scaled``."""
    scaled = stepped("%scaled", scale, "%scores", (2, 5, 7), 0, "%share", np.array([SHARE, 0.125]))
    return _behind(case, f"%keys: {KEYS}", "tensor<2x5x7xf32>", f"""
  %room = tensor.empty() : tensor<2x5x7xf32>
  %none = linalg.fill ins(%zero : f32) outs(%room : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %scores = linalg.batch_matmul ins(%queries, %keys : tensor<2x5x4xf32>, {KEYS})
      outs(%none : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>{scaled}""")  # fmt: skip


def attention(case: Scaled = QUERIES, scale: float = SHARE) -> str:
    """Return a program whose queries an attention reads."""
    walked = ("h, m, d", "h, d, k", "h, k, n", "", "h, m, n")
    maps = ", ".join(f"affine_map<(h, m, n, k, d) -> ({dims})>" for dims in walked)
    return _behind(case, f"%keys: {KEYS}, %values: {VALUES}", "tensor<2x5x3xf32>", f"""
  %share = arith.constant {scale} : f32
  %room = tensor.empty() : tensor<2x5x3xf32>
  %scaled = iree_linalg_ext.attention <indexing_maps = [{maps}]>
      ins(%queries, %keys, %values, %share : tensor<2x5x4xf32>, {KEYS}, {VALUES}, f32)
      outs(%room : tensor<2x5x3xf32>) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> tensor<2x5x3xf32>""")  # fmt: skip


def one_product(scale: str = "mulf %x, %s", keys: int = 8) -> str:
    """Return a program whose queries, keys and values are parts of one product; keys begin at a column of that."""
    text = ""
    for name, begin, order in (("queries", 0, [1, 0, 2]), ("keys", keys, [1, 2, 0]), ("values", 16, [1, 0, 2])):
        kind = "tensor<2x4x5xf32>" if name == "keys" else "tensor<2x5x4xf32>"
        text += f"""
  %{name}_part = tensor.extract_slice %step0[0, {begin}] [5, 8] [1, 1] : tensor<5x24xf32> to tensor<5x8xf32>
  %{name}_heads = tensor.expand_shape %{name}_part [[0], [1, 2]] output_shape [5, 2, 4]
      : tensor<5x8xf32> into tensor<5x2x4xf32>
  %{name}_space = tensor.empty() : {kind}
  %{name} = linalg.transpose ins(%{name}_heads : tensor<5x2x4xf32>) outs(%{name}_space : {kind})
      permutation = {order}"""
    text += """
  %room = tensor.empty() : tensor<2x5x5xf32>
  %none = linalg.fill ins(%zero : f32) outs(%room : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>
  %scores = linalg.batch_matmul ins(%queries, %keys : tensor<2x5x4xf32>, tensor<2x4x5xf32>)
      outs(%none : tensor<2x5x5xf32>) -> tensor<2x5x5xf32>"""
    text += stepped("%scaled", scale, "%scores", (2, 5, 5), 0, "%share", np.array([SHARE, 0.125]))
    before = ONE_PRODUCT.text().split("  return ")[0].replace("-> tensor<5x24xf32> {", "-> tensor<2x5x4xf32> {", 1)
    return f"""{before}{text}
  %last = tensor.empty() : tensor<2x5x4xf32>
  %begin = linalg.fill ins(%zero : f32) outs(%last : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  %result = linalg.batch_matmul ins(%scaled, %values : tensor<2x5x5xf32>, tensor<2x5x4xf32>)
      outs(%begin : tensor<2x5x4xf32>) -> tensor<2x5x4xf32>
  return %result : tensor<2x5x4xf32>
}}
"""


def inputs(case: Scaled = QUERIES) -> list[np.ndarray]:
    """Return the arguments of both programs: small integers."""
    rng = np.random.default_rng(0)
    drawn = (rng.integers(-3, 4, shape).astype(np.float32) for shape in ((2, 4, 7), (2, 7, 3)))
    return [*drawn, case.values("image")]


def _behind(case: Scaled, arguments: str, result: str, text: str) -> str:
    """Return a program with ops behind the result, which is split into heads and called ``%queries``."""
    own = "tensor<5x8xf32>"
    before, last = case.text().split("  return ")
    heads = f"""  %heads = tensor.expand_shape {last.split(" :")[0]} [[0], [1, 2]] output_shape [5, 2, 4]
      : {own} into tensor<5x2x4xf32>
  %space = tensor.empty() : tensor<2x5x4xf32>
  %queries = linalg.transpose ins(%heads : tensor<5x2x4xf32>) outs(%space : tensor<2x5x4xf32>)
      permutation = [1, 0, 2]"""
    begin = before.replace("%image:", f"{arguments}, %image:", 1).replace(f"-> {own} {{", f"-> {result} {{", 1)
    return f"{begin}{heads}{text}\n  return %scaled : {result}\n}}\n"
