"""Operations of random programs that reduce dimensions: matrix products, convolutions, sums, maxima and softmax."""

from math import sqrt

import numpy as np

from benchmarks.fuzz.arithmetic import convolution, results, taps_by_group
from benchmarks.fuzz.draft import EXTENTS, Array, Draft
from benchmarks.mlir_text import Value, is_float, window_attributes
from mlir_sched.runner.checks.rounding import MATH_WEIGHT


def multiplied(draft: Draft, value: Value) -> Value | None:
    """Multiply matrices with a new argument, transposed or not; bytes give sums of 32 bits."""
    if len(value.shape) not in (2, 3) or value.kind == "i16":
        return None
    batch, (m, k), n = value.shape[:-2], value.shape[-2:], draft.any_of(EXTENTS)
    turned, outer = draft.rng.random() < 0.5, ["b"] if batch else []
    right = draft.argument(*batch, *((n, k) if turned else (k, n)), kind=value.kind)
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
    oh, ow = (results(size, window, stride, dilation) for size in (h, w))
    if oh < 1 or ow < 1:
        return None
    depthwise, f = draft.rng.random() < 0.4, draft.any_of([1, 3, 8, 16, 17])
    weights = draft.argument(window, window, c, *([] if depthwise else [f]), kind=value.kind)
    kind = "i32" if value.kind == "i8" else value.kind
    name = "depthwise_conv_2d_nhwc_hwc" if depthwise else "conv_2d_nhwc_hwcf"
    start = draft.filled((n, oh, ow, c if depthwise else f), kind)
    strides, dilations = [stride] * 2, [dilation] * 2

    def compute(x: Array, filters: Array) -> Array:
        image, taps = (each.astype(np.float64 if is_float(kind) else np.int32) for each in (x, filters))
        grouped = taps_by_group(taps, depthwise=depthwise, first=False)
        return np.moveaxis(convolution(np.moveaxis(image, -1, 1), grouped, strides, dilations), 1, -1)

    terms = window * window * (1 if depthwise else c)
    made = draft.made(start.shape, kind, compute, value, weights, roundings=sqrt(terms) + 2)
    draft.linalg(made, f"{name} {window_attributes(strides, dilations)}", [value, weights], start)
    return made


def reduced(draft: Draft, value: Value) -> Value | None:
    """Sum, or take the largest, along one dimension."""
    if len(value.shape) < 2:
        return None
    axis = int(draft.rng.integers(len(value.shape)))
    shape = tuple(size for position, size in enumerate(value.shape) if position != axis)
    adds = draft.rng.random() < 0.6
    least = {"i8": -128, "i16": -32768, "i32": -(2**31)}.get(value.kind, -60000.0)
    start = draft.filled(shape, value.kind, 0.0 if adds else least)
    float_name, integer_name = ("addf", "addi") if adds else ("maximumf", "maxsi")
    made = draft.made(
        shape, value.kind,
        (lambda x: x.sum(axis, dtype=x.dtype)) if adds else (lambda x: np.maximum(x.max(axis), least)), value,
        roundings=sqrt(value.shape[axis]) + 1,
    )  # fmt: skip
    op = f"reduce {{ arith.{float_name if value.is_float else integer_name} }}"
    draft.linalg(made, op, [value], start, f"dimensions = [{axis}]")
    return made


def softmax(draft: Draft, value: Value) -> Value | None:
    """Take the softmax along one dimension."""
    if not value.is_float:
        return None
    axis, empty = int(draft.rng.integers(len(value.shape))), draft.empty(value.shape, value.kind)

    def compute(x: Array) -> Array:
        raised = np.exp(x - x.max(axis, keepdims=True))
        return np.asarray(raised / raised.sum(axis, keepdims=True))

    made = draft.made(value.shape, value.kind, compute, value, roundings=sqrt(value.shape[axis]) + MATH_WEIGHT + 2)
    draft.linalg(made, f"softmax dimension({axis})", [value], empty)
    return made


def _multiply_add(read: str, kind: str) -> list[str]:
    """Return the body of a sum of products: what is read is widened to the type of the sum."""
    multiply, add, widen = ("mulf", "addf", "extf") if is_float(kind) else ("muli", "addi", "extsi")
    widened = [f"%w{name} = arith.{widen} %{name} : {read} to {kind}" for name in "xy" if read != kind]
    x, y = ("%wx", "%wy") if widened else ("%x", "%y")
    return [*widened, f"%p = arith.{multiply} {x}, {y} : {kind}", f"%r = arith.{add} %o, %p : {kind}"]
