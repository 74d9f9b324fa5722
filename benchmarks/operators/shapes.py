"""Shapes that are in no other table: odd sizes, two epilogues, fused producers, any stride, layout, type and reduction.

Every shape comes in two sizes, the same program with different extents: :mod:`benchmarks.operators.further_shapes`
tunes the large program, and the tests check the small program.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.mlir_text import Value
from benchmarks.operators.shape_programs import SUM, Builder, layout_of

NHWC, NCHW, DEPTHWISE = "conv_2d_nhwc_hwcf", "conv_2d_nchw_fchw", "depthwise_conv_2d_nhwc_hwc"
RELU = ["%zero = arith.constant 0.0", "%r = arith.maximumf %x0, %zero"]
GELU = [
    "%half = arith.constant 0.5",
    "%one = arith.constant 1.0",
    "%scale = arith.constant 0.70710678",
    "%t = arith.mulf %x0, %scale",
    "%e = math.erf %t",
    "%f = arith.addf %e, %one",
    "%g = arith.mulf %x0, %half",
    "%r = arith.mulf %f, %g",
]
ADD = ["%r = arith.addf %x0, %x1"]
ADD_RELU = ["%s = arith.addf %x0, %x1", "%zero = arith.constant 0.0", "%r = arith.maximumf %s, %zero"]
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """A program in two sizes.

    Attributes:
        name: The shape's name.
        text: The program in the size that is tuned: microseconds to a few milliseconds a call.
        small: The program in the size that the tests check.
    """

    name: str
    text: str
    small: str


def loops(rank: int) -> str:
    """Return the index expressions of the identity map of a rank: ``d0, d1, ...``."""
    return ", ".join(f"d{i}" for i in range(rank))


def relu(b: Builder, x: Value) -> Value:
    return b.each(RELU, x)


def gelu(b: Builder, x: Value) -> Value:
    return b.each(GELU, x)


def bias(b: Builder, x: Value) -> Value:
    """Add a vector along the last dimension."""
    return b.each(ADD, x, b.argument(x.shape[-1], kind=x.kind))


def residual(b: Builder, x: Value) -> Value:
    return b.each(ADD, x, b.argument(*x.shape, kind=x.kind))


def batch_norm(b: Builder, x: Value) -> Value:
    """Scale and shift by vectors along the last dimension."""
    scale, shift = b.argument(x.shape[-1]), b.argument(x.shape[-1])
    return b.each(["%p = arith.mulf %x0, %x1", "%r = arith.addf %p, %x2"], x, scale, shift)


def to_f16(b: Builder, x: Value) -> Value:
    return b.each([f"%r = arith.truncf %x0 : {x.kind} to f16"], x, kind="f16")


Step = Callable[[Builder, Value], Value]


def dequantise(b: Builder, x: Value) -> Value:
    """Convert i8 to floating-point numbers and scale them by a vector along the last dimension."""
    body = ["%f = arith.sitofp %x0 : i8 to f32", "%r = arith.mulf %f, %x1"]
    return b.each(body, x, b.argument(x.shape[-1]), kind="f32")


def after(b: Builder, x: Value, steps: Sequence[Step]) -> str:
    for step in steps:
        x = step(b, x)
    return b.program(x)


def matmul(sizes: Sizes, *steps: Step, kind: str = "f32") -> str:
    m, n, k = sizes
    b = Builder()
    product = b.named("matmul", (b.argument(m, k, kind=kind), b.argument(k, n, kind=kind)), (m, n))
    return after(b, product, steps)


def dequantised_matmul(sizes: Sizes) -> str:
    """Return a product with an i8 matrix that is dequantised first, plus a bias."""
    m, n, k = sizes
    b = Builder()
    weights = dequantise(b, b.argument(k, n, kind="i8"))
    return after(b, b.named("matmul", (b.argument(m, k), weights), (m, n)), [bias])


def normalised_matmul(sizes: Sizes) -> str:
    """Return a product whose left operand is scaled, shifted and passed through a relu first."""
    m, n, k = sizes
    b = Builder()
    return b.program(b.named("matmul", (relu(b, batch_norm(b, b.argument(m, k))), b.argument(k, n)), (m, n)))


def matvec(sizes: Sizes) -> str:
    m, k = sizes
    b = Builder()
    return b.program(b.named("matvec", (b.argument(m, k), b.argument(k)), (m,)))


def vecmat(sizes: Sizes) -> str:
    k, n = sizes
    b = Builder()
    return b.program(b.named("vecmat", (b.argument(k), b.argument(k, n)), (n,)))


def dot(sizes: Sizes) -> str:
    b = Builder()
    return b.program(b.named("dot", (b.argument(*sizes), b.argument(*sizes)), ()))


def contraction(sizes: Sizes, spec: str, *steps: Step, kind: str = "f32", out: str = "") -> str:
    """Return the contraction of ``spec``; the sizes are the extents of its loops in order of appearance."""
    one, two = (part.split(" ") for part in spec.split(" -> ")[0].split(", "))
    extents = dict(zip(dict.fromkeys((*one, *two)), sizes, strict=True))
    b = Builder()
    left, right = (b.argument(*(extents[loop] for loop in each), kind=kind) for each in (one, two))
    return after(b, b.contract(spec, left, right, out), steps)


def attention_scores(sizes: Sizes) -> str:
    """Return softmax(Q K^T / sqrt(d)) of heads that are interleaved in memory: q[b, m, h, d], k[b, n, h, d]."""
    batch, m, heads, depth = sizes
    b = Builder()
    q, k = b.argument(batch, m, heads, depth), b.argument(batch, m, heads, depth)
    scores = b.contract("b m h d, b n h d -> b h m n", q, k)
    scale = [f"%c = arith.constant {depth**-0.5:e}", "%r = arith.mulf %x0, %c"]
    return b.program(b.softmax(b.each(scale, scores)))


def two_results(sizes: Sizes) -> str:
    """Return a product and, as a second result, its relu."""
    m, n, k = sizes
    b = Builder()
    product = b.named("matmul", (b.argument(m, k), b.argument(k, n)), (m, n))
    return b.program(product, relu(b, product))


def convolution(
    sizes: Sizes,
    *steps: Step,
    op: str = NHWC,
    kernel: Sizes = (3, 3),
    filters: int = 0,
    before: Sequence[Step] = (),
    kind: str = "f32",
    **options: Any,
) -> str:
    """Return a convolution with producers and epilogues.

    Args:
        sizes: Sizes of the image, in the order of its layout.
        filters: Channels of the result; for a depthwise convolution its channel multiplier, if it has one.
        options: Further arguments of :meth:`Builder.convolution`.
    """
    b = Builder()
    image = b.argument(*sizes, kind="i8" if dequantise in before else kind)
    for step in before:
        image = step(b, image)
    layout, taps = layout_of(op)
    channels, windows = {**dict(zip(layout, sizes, strict=True)), "f": filters, "m": filters}, iter(kernel)
    lengths = [next(windows) if letter in "dhw" else channels[letter] for letter in taps]
    return after(b, b.convolution(op, image, b.argument(*lengths, kind=kind), **options), steps)


def residual_block(sizes: Sizes, filters: int) -> str:
    """Return relu(conv(x) + bias + x) of a padded 3x3 convolution that keeps the channels."""
    b = Builder()
    image = b.argument(*sizes)
    result = bias(b, b.convolution(NHWC, image, b.argument(3, 3, sizes[-1], filters), padding=((1, 1), (1, 1))))
    return b.program(b.each(ADD_RELU, result, image))


def pooling(sizes: Sizes, op: str, start: float = 0.0, **options: Any) -> str:
    """Pool over windows of 3x3; a sum is divided by 9."""
    b = Builder()
    result = b.convolution(op, b.argument(*sizes), b.empty((3, 3), "f32"), start=start, **options)
    if op.endswith("sum"):
        result = divided(b, result, 9)
    return b.program(result)


def transposed(sizes: Sizes, order: str, *steps: Step) -> str:
    """Return a permutation of the dimensions with a relu and further element-wise steps."""
    b = Builder()
    source = b.argument(*sizes)
    made = b.map([(source, loops(len(sizes)))], RELU, at=order, loops=order)
    return after(b, made, steps)


def elementwise(sizes: Sizes, *steps: Step, kind: str = "f32") -> str:
    b = Builder()
    return after(b, b.argument(*sizes, kind=kind), steps)


def reduction(sizes: Sizes, dims: Sizes, body: Sequence[str] = SUM, start: float = 0.0) -> str:
    b = Builder()
    return b.program(b.reduce(b.argument(*sizes), dims, body, start))


SQUARES = ["%p = arith.mulf %x0, %x0", "%s = arith.addf %out, %p"]
MAXIMUM, LOWEST = ["%s = arith.maximumf %out, %x0"], -math.inf
MINIMUM, HIGHEST = ["%s = arith.minimumf %out, %x0"], math.inf


def divided(b: Builder, x: Value, count: int) -> Value:
    return b.each([f"%c = arith.constant {float(count)}", "%r = arith.divf %x0, %c"], x)


def rows_with(b: Builder, x: Value, value: Value, body: Sequence[str]) -> Value:
    """Combine every row along the last dimension with its own element of ``value``."""
    rank = len(x.shape)
    return b.map([(x, loops(rank)), (value, loops(rank - 1))], body)


def mean(sizes: Sizes, dims: Sizes) -> str:
    b = Builder()
    source = b.argument(*sizes)
    return b.program(divided(b, b.reduce(source, dims), math.prod(sizes[dim] for dim in dims)))


def variance(sizes: Sizes) -> str:
    b = Builder()
    x = b.argument(*sizes)
    average = divided(b, b.reduce(x, [1]), sizes[1])
    centred = rows_with(b, x, average, ["%r = arith.subf %x0, %x1"])
    return b.program(divided(b, b.reduce(centred, [1], SQUARES), sizes[1]))


def rms_norm(sizes: Sizes) -> str:
    b = Builder()
    x = b.argument(*sizes)
    squares = b.reduce(x, [1], SQUARES)
    body = [
        f"%c = arith.constant {float(sizes[1])}",
        "%epsilon = arith.constant 1.0e-5",
        "%m = arith.divf %x1, %c",
        "%e = arith.addf %m, %epsilon",
        "%i = math.rsqrt %e",
        "%n = arith.mulf %x0, %i",
        "%r = arith.mulf %n, %x2",
    ]
    return b.program(b.map([(x, "d0, d1"), (squares, "d0"), (b.argument(sizes[1]), "d1")], body))


def layer_norm(sizes: Sizes) -> str:
    b = Builder()
    x = b.argument(*sizes)
    average = divided(b, b.reduce(x, [1]), sizes[1])
    centred = rows_with(b, x, average, ["%r = arith.subf %x0, %x1"])
    spread = divided(b, b.reduce(centred, [1], SQUARES), sizes[1])
    body = [
        "%epsilon = arith.constant 1.0e-5",
        "%e = arith.addf %x1, %epsilon",
        "%i = math.rsqrt %e",
        "%r = arith.mulf %x0, %i",
    ]
    return b.program(batch_norm(b, rows_with(b, centred, spread, body)))


def softmax(sizes: Sizes) -> str:
    b = Builder()
    return b.program(b.softmax(b.argument(*sizes)))


def log_softmax(sizes: Sizes) -> str:
    b = Builder()
    x = b.argument(*sizes)
    shifted = rows_with(b, x, b.reduce(x, [1], MAXIMUM, LOWEST), ["%r = arith.subf %x0, %x1"])
    total = b.reduce(shifted, [1], ["%e = math.exp %x0", "%s = arith.addf %out, %e"])
    return b.program(rows_with(b, shifted, total, ["%l = math.log %x1", "%r = arith.subf %x0, %l"]))


def _shape(name: str, make: Callable[..., str], real: Sizes, small: Sizes, *rest: Any, **options: Any) -> Shape:
    return Shape(name, make(real, *rest, **options), make(small, *rest, **options))


def _convolution(name: str, real: Sizes, small: Sizes, *steps: Step, **options: Any) -> Shape:
    return _shape(name, convolution, real, small, *steps, **options)


PADDED = ((1, 1), (1, 1))
SHAPES = (
    # contractions
    _shape("matmul_prime", matmul, (127, 131, 113), (17, 19, 23)),
    _shape("matmul_tall", matmul, (4096, 16, 64), (96, 16, 8)),
    _shape("matmul_wide", matmul, (16, 4096, 64), (16, 96, 8)),
    _shape("matmul_tiny", matmul, (8, 8, 8), (8, 8, 8)),
    _shape("matmul_deep", matmul, (16, 16, 4096), (16, 16, 128)),
    _shape("matmul_three_columns", matmul, (256, 3, 512), (24, 3, 40)),
    _shape("matmul_one_deep", matmul, (200, 300, 1), (20, 30, 1)),
    _shape("matmul_f16", matmul, (96, 160, 192), (16, 48, 32), kind="f16"),
    _shape("matmul_bf16", contraction, (100, 192, 120), (20, 32, 24), "m k, k n -> m n", kind="bf16", out="f32"),
    _shape("matmul_bias_gelu", matmul, (77, 200, 300), (21, 40, 30), bias, gelu),
    _shape("matmul_residual_relu", matmul, (130, 100, 84), (26, 20, 12), bias, residual, relu),
    _shape("matmul_two_results", two_results, (96, 128, 160), (16, 32, 24)),
    _shape("matmul_dequantised", dequantised_matmul, (48, 250, 320), (12, 50, 32)),
    _shape("matmul_normalised", normalised_matmul, (65, 129, 257), (13, 33, 17)),
    _shape("matmul_transposed_a", contraction, (300, 150, 170), (36, 18, 20), "k m, k n -> m n"),
    _shape("matmul_transposed_both", contraction, (200, 150, 170), (36, 18, 20), "k m, n k -> m n"),
    _shape("matvec_odd", matvec, (1001, 777), (101, 77)),
    _shape("vecmat_odd", vecmat, (777, 1001), (77, 101)),
    _shape("dot_odd", dot, (100003,), (1003,)),
    _shape("batch_odd", contraction, (7, 50, 70, 60), (3, 10, 14, 12), "b m k, b k n -> b m n"),
    _shape("batch_shared", contraction, (5, 60, 90, 75), (3, 12, 18, 15), "b m k, k n -> b m n", bias),
    _shape("two_batches", contraction, (3, 4, 65, 49, 33), (2, 3, 13, 7, 9), "b h m k, b h k n -> b h m n"),
    _shape("two_reductions", contraction, (60, 7, 36, 80), (12, 3, 9, 16), "m i k, i k n -> m n"),
    _shape("scores_bmhk", contraction, (2, 65, 6, 32, 65), (2, 13, 3, 8, 13), "b m h k, b n h k -> b h m n"),
    _shape("values_bmhk", contraction, (2, 6, 65, 67, 40), (2, 3, 13, 11, 8), "b h m n, b n h k -> b m h k"),
    _shape("attention_scores", attention_scores, (2, 65, 6, 32), (2, 13, 3, 8)),
    # convolutions
    _convolution("conv_bias_relu", (1, 30, 30, 30), (1, 10, 10, 6), bias, relu, filters=45),
    _shape("conv_residual_relu", residual_block, (1, 28, 28, 40), (1, 8, 8, 40), 40),
    _convolution("conv_norm_relu_f16", (1, 30, 26, 24), (1, 8, 10, 8), bias, batch_norm, relu, to_f16, filters=48),
    _convolution(
        "conv_dequantised", (1, 28, 28, 20), (1, 8, 8, 6), relu, before=[dequantise], filters=36, padding=PADDED
    ),
    _convolution(
        "conv_normalised", (2, 20, 20, 18), (2, 7, 7, 6), before=[batch_norm, relu], filters=33, padding=PADDED
    ),
    _convolution("conv_odd_batch", (7, 14, 14, 19), (3, 6, 6, 5), filters=29),
    _convolution("conv_stride_3", (1, 65, 65, 12), (1, 14, 17, 12), filters=40, stride=(3, 3)),
    _convolution("conv_dilation_3", (1, 36, 36, 10), (1, 12, 12, 10), filters=30, dilation=(3, 3)),
    _convolution("conv_mixed_strides", (1, 41, 60, 9), (1, 11, 14, 9), filters=20, stride=(2, 3), dilation=(1, 2)),
    _convolution(
        "conv_uneven_padding", (1, 31, 33, 14), (1, 9, 11, 6), filters=34, stride=(2, 2), padding=((0, 1), (1, 2))
    ),
    _convolution("conv_2x2", (3, 23, 23, 17), (3, 7, 7, 5), filters=35, kernel=(2, 2)),
    _convolution("conv_4x4", (1, 35, 35, 13), (1, 9, 9, 5), filters=27, kernel=(4, 4), stride=(2, 2)),
    _convolution("conv_1x7", (1, 26, 26, 22), (1, 6, 14, 6), filters=38, kernel=(1, 7), padding=((0, 0), (3, 3))),
    _convolution("conv_7x1", (1, 26, 26, 22), (1, 14, 6, 6), filters=38, kernel=(7, 1), padding=((3, 3), (0, 0))),
    _convolution("conv_1x1_strided", (1, 56, 56, 25), (1, 12, 12, 9), bias, filters=50, kernel=(1, 1), stride=(2, 2)),
    _convolution("conv_5x5_image", (1, 5, 5, 70), (1, 5, 5, 14), bias, filters=90, padding=PADDED),
    _convolution("conv_bf16", (1, 22, 22, 24), (1, 8, 8, 8), filters=48, kind="bf16"),
    _convolution("conv_nchw", (1, 20, 29, 31), (1, 5, 9, 11), relu, op=NCHW, filters=30, padding=PADDED),
    _convolution("conv_1d", (5, 250, 27), (3, 50, 7), bias, relu, op="conv_1d_nwc_wcf", kernel=(5,), filters=41),
    _convolution(
        "conv_3d", (1, 7, 15, 15, 11), (1, 5, 7, 7, 5), op="conv_3d_ndhwc_dhwcf", kernel=(3, 3, 3), filters=19
    ),
    _convolution("conv_grouped", (2, 3, 5, 27, 29), (2, 3, 5, 9, 11), op="conv_2d_ngchw_gfchw", filters=7),
    _convolution("depthwise_17", (3, 56, 56, 17), (3, 12, 12, 17), bias, relu, op=DEPTHWISE, padding=PADDED),
    _convolution("depthwise_30_strided", (1, 57, 57, 30), (1, 13, 13, 30), op=DEPTHWISE, stride=(2, 2), kernel=(5, 5)),
    _convolution(
        "depthwise_nchw_strided",
        (1, 44, 49, 53),
        (1, 20, 11, 13),
        relu,
        op="depthwise_conv_2d_nchw_chw",
        stride=(2, 2),
        padding=PADDED,
    ),
    _convolution("depthwise_3", (1, 112, 112, 3), (1, 14, 14, 3), op=DEPTHWISE),
    _convolution("depthwise_multiplier", (1, 40, 40, 10), (1, 10, 10, 10), op="depthwise_conv_2d_nhwc_hwcm", filters=3),
    _shape("max_pool", pooling, (1, 57, 57, 33), (1, 13, 13, 9), "pooling_nhwc_max", LOWEST, stride=(2, 2)),
    _shape("average_pool", pooling, (2, 37, 37, 24), (2, 9, 9, 8), "pooling_nhwc_sum"),
    _shape(
        "max_pool_padded",
        pooling,
        (1, 56, 56, 32),
        (1, 12, 12, 16),
        "pooling_nhwc_max",
        LOWEST,
        stride=(2, 2),
        padding=PADDED,
    ),
    # reductions
    _shape("sum_first", reduction, (511, 333), (51, 33), (0,)),
    _shape("sum_middle", reduction, (31, 65, 77), (5, 13, 17), (1,)),
    _shape("sum_two", reduction, (13, 64, 63), (5, 8, 13), (0, 2)),
    _shape("sum_inner_two", reduction, (40, 37, 51), (6, 7, 11), (1, 2)),
    _shape("sum_all", reduction, (317, 331), (17, 31), (0, 1)),
    _shape("sum_of_one", reduction, (5000, 1), (50, 1), (1,)),
    _shape("maximum", reduction, (301, 777), (31, 77), (1,), MAXIMUM, LOWEST),
    _shape("minimum_first", reduction, (301, 777), (31, 77), (0,), MINIMUM, HIGHEST),
    _shape("mean_image", mean, (2, 14, 14, 129), (2, 5, 5, 33), (1, 2)),
    _shape("variance", variance, (129, 255), (13, 35)),
    _shape("rms_norm", rms_norm, (65, 769), (13, 77)),
    _shape("layer_norm", layer_norm, (37, 511), (7, 51)),
    _shape("log_softmax", log_softmax, (33, 1001), (5, 101)),
    _shape("softmax_long", softmax, (1, 50000), (1, 1000)),
    _shape("softmax_short", softmax, (3000, 10), (30, 10)),
    _shape("softmax_4d", softmax, (3, 5, 17, 59), (3, 2, 5, 19)),
    # element-wise
    _shape("transpose_bias", transposed, (127, 257), (27, 37), "d1, d0", bias),
    _shape("permute_3d", transposed, (33, 65, 47), (5, 9, 7), "d2, d0, d1"),
    _shape("gelu", elementwise, (301, 333), (31, 33), gelu),
    _shape("dequantise", elementwise, (301, 333), (31, 33), dequantise, kind="i8"),
    _shape("cast_f16", elementwise, (255, 1023), (25, 103), to_f16),
)
