"""Reductions as small programs, one dispatch each, that no subgroup walks: columns, means over images, uneven rows."""

from __future__ import annotations

import math

from payload_text import Payload
from payloads import column_sum, independent_ops, layernorm, row_sum, row_sum_then_scale, softmax

ADD, MAXIMUM = ("arith.addf", "0.0"), ("arith.maximumf", "0xFF800000")
"""A reduction's scalar op and the value that it starts from."""


def reduced(
    shape: tuple[int, ...], along: tuple[int, ...], *, kind: str = "f32", by: tuple[str, str] = ADD, mean: bool = False
) -> Payload:
    """Return the reduction of a tensor.

    Args:
        shape: Shape of the tensor.
        along: The dimensions that are reduced.
        kind: Element type.
        by: The scalar op, and the value that it starts from.
        mean: Whether the result is divided by the number of elements that it is reduced from.
    """
    kept = [dim for dim in range(len(shape)) if dim not in along]
    a, r = _tensor(shape, kind), _tensor([shape[dim] for dim in kept], kind)
    loops, left = _names(range(len(shape))), _names(kept)
    iterators = ", ".join('"reduction"' if dim in along else '"parallel"' for dim in range(len(shape)))
    op, start = by
    body = f"""  %start = arith.constant {start} : {kind}
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%start : {kind}) outs(%e : {r}) -> {r}
  %r = linalg.generic {{indexing_maps = [affine_map<({loops}) -> ({loops})>, affine_map<({loops}) -> ({left})>],
      iterator_types = [{iterators}]}} ins(%a : {a}) outs(%f : {r}) {{
    ^bb0(%x: {kind}, %acc: {kind}):
      %s = {op} %acc, %x : {kind}
      linalg.yield %s : {kind}
  }} -> {r}
"""
    if mean:
        body += _divided(r, left, len(kept), kind, math.prod(shape[dim] for dim in along))
    return Payload(f"func.func @main(%a: {a}) -> {r} {{\n{body}  return %{'m' if mean else 'r'} : {r}\n}}\n")


def sum_of_bytes(rows: int, columns: int) -> Payload:
    """Return the sum of every column of signed bytes, as 32-bit integers."""
    a, r = f"tensor<{rows}x{columns}xi8>", f"tensor<{columns}xi32>"
    return Payload(f"""func.func @main(%a: {a}) -> {r} {{
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : {r}
  %f = linalg.fill ins(%zero : i32) outs(%e : {r}) -> {r}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>],
      iterator_types = ["reduction", "parallel"]}} ins(%a : {a}) outs(%f : {r}) {{
    ^bb0(%x: i8, %acc: i32):
      %w = arith.extsi %x : i8 to i32
      %s = arith.addi %acc, %w : i32
      linalg.yield %s : i32
  }} -> {r}
  return %r : {r}
}}
""")


def _divided(type_: str, loops: str, rank: int, kind: str, count: int) -> str:
    parallel = ", ".join(['"parallel"'] * rank)
    maps = ", ".join([f"affine_map<({loops}) -> ({loops})>"] * 2)
    return f"""  %count = arith.constant {float(count)} : {kind}
  %m = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{parallel}]}}
      ins(%r : {type_}) outs(%e : {type_}) {{
    ^bb0(%x: {kind}, %o: {kind}):
      %q = arith.divf %x, %count : {kind}
      linalg.yield %q : {kind}
  }} -> {type_}
"""


def _names(dims: range | list[int]) -> str:
    return ", ".join(f"d{dim}" for dim in dims)


def _tensor(shape: tuple[int, ...] | list[int], kind: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


REDUCTIONS: dict[str, Payload] = {
    "columns": column_sum(96, 160),
    "columns_f16": reduced((48, 64), (0,), kind="f16"),
    "maxima": reduced((40, 96), (0,), by=MAXIMUM),
    "middle": reduced((6, 20, 32), (1,)),
    "mean_nchw": reduced((64, 7, 7), (1, 2), mean=True),
    "mean_nhwc": reduced((4, 7, 7, 64), (1, 2), mean=True),
    "rows_10": reduced((64, 10), (1,)),
    "softmax_10": softmax(2, 32, 10),
    "softmax_129": softmax(2, 32, 129),
    "layernorm_30": layernorm(64, 30),
    "scale_rows_30": row_sum_then_scale(64, 30),
    "independent_ops": independent_ops(64, 30),
}
"""Programs with extents that tiles divide."""
UNEVEN: dict[str, Payload] = {
    "rows_prime": row_sum(97, 509),
    "columns_prime": column_sum(61, 97),
    "few_results": reduced((5, 6, 6), (1, 2), mean=True),
    "softmax_prime": softmax(1, 13, 31),
}
"""Programs whose results no tiles of several threads divide, or that are fewer than the threads of a subgroup."""
FOUR_LOOPS = reduced((3, 2, 5, 2, 7, 2, 11), (1, 3, 5))
"""A program with more loops than a grid has dimensions; IREE 3.13's own code for it is wrong on lavapipe."""
