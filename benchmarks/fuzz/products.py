"""Operations of random programs that sum products: matrix products and convolutions."""

from __future__ import annotations

from itertools import product
from math import sqrt

import numpy as np

from benchmarks.fuzz.draft import Array, Draft, Value, is_float
from benchmarks.fuzz.extents import EXTENTS


def multiplied(draft: Draft, value: Value) -> Value | None:
    """Multiply matrices with a new argument, transposed or not; bytes give sums of 32 bits."""
    if len(value.shape) not in (2, 3) or value.kind == "i16":
        return None
    batch, (m, k), n = value.shape[:-2], value.shape[-2:], draft.any_of(EXTENTS)
    turned, outer = draft.rng.random() < 0.5, ["b"] if batch else []
    right = draft.argument((*batch, *((n, k) if turned else (k, n))), value.kind)
    kind = {"i8": "i32", "f16": draft.any_of(["f16", "f32"]), "bf16": "f32"}.get(value.kind, value.kind)
    maps = [[*outer, *last] for last in ("mk", "nk" if turned else "kn", "mn")]
    left_map, right_map, own_map = ("".join(each) for each in maps)
    start, computed = draft.filled((*batch, m, n), kind), np.float64 if is_float(kind) else np.int32

    def compute(x: Array, y: Array) -> Array:
        return np.asarray(np.einsum(f"{left_map},{right_map}->{own_map}", x.astype(computed), y.astype(computed)))

    made = draft.made(start.shape, kind, compute, value, right, roundings=sqrt(k) + 2)
    draft.generic(made, start, [value, right], [*outer, *"mnk"], maps, len(outer) + 2, _multiply_add(value.kind, kind))
    return made


def convolved(draft: Draft, value: Value) -> Value | None:
    """Convolve an image with channels last with a new filter, each channel alone or all together."""
    if len(value.shape) != 4 or value.kind not in ("f32", "f16", "f64", "i8"):
        return None
    n, h, w, c = value.shape
    stride, dilation, window = draft.any_of([1, 1, 2]), draft.any_of([1, 1, 2]), draft.any_of([1, 2, 3])
    oh, ow = ((size - (window - 1) * dilation - 1) // stride + 1 for size in (h, w))
    if oh < 1 or ow < 1:
        return None
    depthwise, f = draft.rng.random() < 0.4, draft.any_of([1, 3, 8, 16, 17])
    weights = draft.argument((window, window, c) if depthwise else (window, window, c, f), value.kind)
    kind = "i32" if value.kind == "i8" else value.kind
    name = "depthwise_conv_2d_nhwc_hwc" if depthwise else "conv_2d_nhwc_hwcf"
    start = draft.filled((n, oh, ow, c if depthwise else f), kind)

    def compute(x: Array, filters: Array) -> Array:
        out = np.zeros(start.shape, np.float64 if is_float(kind) else np.int32)
        for i, j in product(range(window), range(window)):
            rows, columns = (slice(at * dilation, at * dilation + (o - 1) * stride + 1, stride)
                             for at, o in ((i, oh), (j, ow)))  # fmt: skip
            piece = x[:, rows, columns].astype(out.dtype)
            tap = filters[i, j].astype(out.dtype)
            out = out + (piece * tap if depthwise else piece @ tap)
        return out

    terms = window * window * (1 if depthwise else c)
    made = draft.made(start.shape, kind, compute, value, weights, roundings=sqrt(terms) + 2)
    draft.line(
        f"%{made.name} = linalg.{name} {{dilations = dense<{dilation}> : tensor<2xi64>, "
        f"strides = dense<{stride}> : tensor<2xi64>}} ins(%{value.name}, %{weights.name} : {value.type}, "
        f"{weights.type}) outs(%{start.name} : {start.type}) -> {made.type}"
    )
    return made


def _multiply_add(read: str, kind: str) -> list[str]:
    """Return the body of a sum of products: what is read is widened to the type of the sum."""
    multiply, add, widen = ("mulf", "addf", "extf") if is_float(kind) else ("muli", "addi", "extsi")
    widened = [f"%w{name} = arith.{widen} %{name} : {read} to {kind}" for name in "xy" if read != kind]
    x, y = ("%wx", "%wy") if widened else ("%x", "%y")
    return [*widened, f"%p = arith.{multiply} {x}, {y} : {kind}", f"%r = arith.{add} %o, %p : {kind}"]
