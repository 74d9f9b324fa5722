"""Convolutions as small programs, one dispatch each: every rank, layout, stride, dilation and grouping."""

from __future__ import annotations

from payload_text import Payload

FUSED_PADDING = ("--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops",)


def named(
    op: str,
    image: tuple[int, ...],
    kernel: tuple[int, ...],
    result: tuple[int, ...],
    *,
    stride: int = 1,
    dilation: int = 1,
    kind: str = "f32",
    out: str = "",
    epilogue: str = "",
    accumulate: bool = False,
    padding: tuple[tuple[int, int], ...] = (),
) -> Payload:
    """Return a named convolution of linalg.

    Args:
        op: Its name, with the rank of the image as the only digit.
        image, kernel, result: Shapes.
        stride, dilation: The same along every dimension of the image.
        kind: Element type of what is read.
        out: Element type of the result, by default the same.
        epilogue: Result of a bias along the last dimension and a relu, in terms of the loops ``d0, d1, ...`` over the
            convolution's result; empty for neither.
        accumulate: Add to an argument instead of zeros.
        padding: Zeros before and behind the image along each dimension, inside of the dispatch.
    """
    out = out or kind
    a, b, c = _tensor(image, kind), _tensor(kernel, kind), _tensor(result, out)
    rank = next(letter for letter in op if letter.isdigit())
    numbers = (("dilations", dilation), ("strides", stride))
    attributes = ", ".join(f"{name} = dense<{number}> : tensor<{rank}xi64>" for name, number in numbers)
    shape = _unpadded(image, padding)
    arguments = f"{'%source' if padding else '%a'}: {_tensor(shape, kind)}, %b: {b}"
    body = _padded(padding, _tensor(shape, kind), a, kind) if padding else ""
    body += f"  %zero = arith.constant {'0.0' if out.startswith('f') else '0'} : {out}\n  %e = tensor.empty() : {c}\n"
    if accumulate:
        arguments += f", %f: {c}"
    else:
        body += f"  %f = linalg.fill ins(%zero : {out}) outs(%e : {c}) -> {c}\n"
    body += f"  %c = linalg.{op} {{{attributes}}} ins(%a, %b : {a}, {b}) outs(%f : {c}) -> {c}\n"
    last, type_ = "%c", c
    if epilogue:
        arguments += f", %v: {_tensor(result[-1:], out)}"
        last, type_ = "%r", _reordered(result, epilogue, out)
        body += _bias_and_relu(result, out, epilogue, type_)
    flags = FUSED_PADDING if padding else ()
    return Payload(f"func.func @main({arguments}) -> {type_} {{\n{body}  return {last} : {type_}\n}}\n", flags)


def generic(
    iterators: str,
    maps: tuple[str, str, str],
    image: tuple[int, ...],
    kernel: tuple[int, ...],
    result: tuple[int, ...],
    *,
    epilogue: str = "",
    padding: tuple[tuple[int, int], ...] = (),
) -> Payload:
    """Return a convolution that has no name in linalg: ``iterators`` is a letter, p or r, per loop.

    ``epilogue`` and ``padding`` as in :func:`named`.
    """
    a, b, c = _tensor(image, "f32"), _tensor(kernel, "f32"), _tensor(result, "f32")
    kinds = ", ".join({"p": '"parallel"', "r": '"reduction"'}[letter] for letter in iterators)
    affine = ", ".join(f"affine_map<{text}>" for text in maps)
    source = _tensor(_unpadded(image, padding), "f32")
    arguments = f"{'%source' if padding else '%a'}: {source}, %b: {b}"
    last, type_, after = "%c", c, ""
    if epilogue:
        arguments += f", %v: {_tensor(result[-1:], 'f32')}"
        last, type_ = "%r", _reordered(result, epilogue, "f32")
        after = _bias_and_relu(result, "f32", epilogue, type_)
    return Payload(
        f"""func.func @main({arguments}) -> {type_} {{
{_padded(padding, source, a, "f32") if padding else ""}  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%zero : f32) outs(%e : {c}) -> {c}
  %c = linalg.generic {{indexing_maps = [{affine}], iterator_types = [{kinds}]}}
      ins(%a, %b : {a}, {b}) outs(%f : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
  }} -> {c}
{after}  return {last} : {type_}
}}
""",
        FUSED_PADDING if padding else (),
    )


def pooling(
    op: str, image: tuple[int, ...], result: tuple[int, ...], window: tuple[int, ...], *, stride: int = 1
) -> Payload:
    """Return a named pooling of linalg in f32: a maximum, a minimum or a sum over windows.

    Args:
        op: Its name, which ends with ``max``, ``min`` or ``sum``.
        image, result, window: Shapes.
        stride: The same along every dimension of the window.
    """
    initial = {"max": "0xFF800000", "min": "0x7F800000", "sum": "0.0"}[op.rpartition("_")[2]]
    a, w, c = (_tensor(shape, "f32") for shape in (image, window, result))
    attributes = ", ".join(
        f"{name} = dense<{number}> : tensor<{len(window)}xi64>"
        for name, number in (("dilations", 1), ("strides", stride))
    )
    return Payload(f"""func.func @main(%a: {a}) -> {c} {{
  %initial = arith.constant {initial} : f32
  %w = tensor.empty() : {w}
  %e = tensor.empty() : {c}
  %f = linalg.fill ins(%initial : f32) outs(%e : {c}) -> {c}
  %r = linalg.{op} {{{attributes}}} ins(%a, %w : {a}, {w}) outs(%f : {c}) -> {c}
  return %r : {c}
}}
""")


def _reordered(shape: tuple[int, ...], loops: str, kind: str) -> str:
    return _tensor(tuple(shape[int(loop[1:])] for loop in loops.split(", ")), kind)


def _unpadded(shape: tuple[int, ...], padding: tuple[tuple[int, int], ...]) -> tuple[int, ...]:
    return tuple(size - low - high for size, (low, high) in zip(shape, padding or ((0, 0),) * len(shape), strict=True))


def _tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{kind}>"


def _padded(padding: tuple[tuple[int, int], ...], source: str, result: str, kind: str) -> str:
    zero = "0.0" if kind.startswith("f") else "0"
    return f"  %pad = arith.constant {zero} : {kind}\n" + _pad("a", "%source", "%pad", padding, f"{source} to {result}")


def _pad(name: str, source: str, value: str, padding: tuple[tuple[int, int], ...], types: str) -> str:
    low, high = (", ".join(str(pair[side]) for pair in padding) for side in (0, 1))
    indices = ", ".join(f"%i{dim}: index" for dim in range(len(padding)))
    return f"""  %{name} = tensor.pad {source} low[{low}] high[{high}] {{
  ^bb0({indices}):
    tensor.yield {value} : {types.rpartition("x")[2].rstrip(">")}
  }} : {types}
"""


def _bias_and_relu(shape: tuple[int, ...], kind: str, result: str, result_type: str) -> str:
    type_, loops = _tensor(shape, kind), ", ".join(f"d{i}" for i in range(len(shape)))
    maps = ", ".join(f"affine_map<({loops}) -> ({text})>" for text in (loops, f"d{len(shape) - 1}", result))
    iterators = ", ".join(['"parallel"'] * len(shape))
    return f"""  %re = tensor.empty() : {result_type}
  %r = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{iterators}]}}
      ins(%c, %v : {type_}, {_tensor(shape[-1:], kind)}) outs(%re : {result_type}) {{
    ^bb0(%x: {kind}, %y: {kind}, %o: {kind}):
      %s = arith.addf %x, %y : {kind}
      %m = arith.maximumf %s, %zero : {kind}
      linalg.yield %m : {kind}
  }} -> {result_type}
"""


SAME, NCHW_RESULT = "d0, d1, d2, d3", "d0, d3, d1, d2"
NHWC, NCHW, DEPTHWISE = "conv_2d_nhwc_hwcf", "conv_2d_nchw_fchw", "depthwise_conv_2d_nhwc_hwc"
GROUPED = (
    "(n, h, w, g, f, i, j, c) -> (n, h * 2 + i, w * 2 + j, g, c)",
    "(n, h, w, g, f, i, j, c) -> (i, j, c, g, f)",
    "(n, h, w, g, f, i, j, c) -> (n, h, w, g, f)",
)
PHASES = (
    "(i, p, j, q, f, a, b, c) -> (i + p + a, j + q + b, c)",
    "(i, p, j, q, f, a, b, c) -> (p, q, a, b, c, f)",
    "(i, p, j, q, f, a, b, c) -> (i, p, j, q, f)",
)
FILTERS_INSIDE = (
    "(n, h, w, f, c, i, j) -> (n, c, h * 2 + i, w * 2 + j)",
    "(n, h, w, f, c, i, j) -> (c, i, j, f)",
    "(n, h, w, f, c, i, j) -> (n, h, w, f)",
)


def padded_network() -> Payload:
    """Return two padded convolutions and a padded pooling, in several dispatches as IREE makes them."""
    image, padded, kernel = _tensor((1, 12, 12, 8), "f32"), _tensor((1, 14, 14, 8), "f32"), _tensor((3, 3, 8, 8), "f32")
    small, window = _tensor((1, 6, 6, 8), "f32"), _tensor((3, 3), "f32")
    sides, attributes = ((0, 0), (1, 1), (1, 1), (0, 0)), "dilations = dense<1> : tensor<2xi64>, strides = dense"

    def convolved(name: str, source: str, weights: str) -> str:
        return f"""{_pad(f"{name}_padded", source, "%zero", sides, f"{image} to {padded}")}
  %{name} = linalg.conv_2d_nhwc_hwcf {{{attributes}<1> : tensor<2xi64>}}
      ins(%{name}_padded, {weights} : {padded}, {kernel}) outs(%f : {image}) -> {image}
"""

    return Payload(f"""func.func @main(%x: {image}, %v: {kernel}, %w: {kernel}) -> {small} {{
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %e = tensor.empty() : {image}
  %f = linalg.fill ins(%zero : f32) outs(%e : {image}) -> {image}
{convolved("first", "%x", "%v")}{convolved("second", "%first", "%w")}
{_pad("third", "%second", "%lowest", sides, f"{image} to {padded}")}
  %se = tensor.empty() : {small}
  %window = tensor.empty() : {window}
  %sf = linalg.fill ins(%lowest : f32) outs(%se : {small}) -> {small}
  %r = linalg.pooling_nhwc_max {{{attributes}<2> : tensor<2xi64>}}
      ins(%third, %window : {padded}, {window}) outs(%sf : {small}) -> {small}
  return %r : {small}
}}
""")


CONVOLUTIONS: dict[str, Payload] = {
    "1d": named("conv_1d_nwc_wcf", (1, 65, 24), (3, 24, 32), (1, 32, 32), stride=2),
    "2d_bias_relu": named(NHWC, (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32), epilogue=SAME),
    "2d_transposed_result": named(NHWC, (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32), epilogue=NCHW_RESULT),
    "2d_accumulating": named(NHWC, (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32), accumulate=True),
    "2d_batch": named(NHWC, (4, 9, 9, 16), (3, 3, 16, 48), (4, 7, 7, 48)),
    "2d_dilated": named(NHWC, (1, 20, 20, 8), (3, 3, 8, 32), (1, 16, 16, 32), dilation=2),
    "2d_strided": named(NHWC, (2, 31, 31, 3), (7, 7, 3, 32), (2, 13, 13, 32), stride=2, epilogue=SAME),
    "2d_odd": named(NHWC, (1, 25, 21, 5), (3, 3, 5, 19), (1, 23, 19, 19), epilogue=SAME),
    "2d_odd_strided": named(NHWC, (1, 47, 39, 5), (3, 3, 5, 19), (1, 23, 19, 19), stride=2, epilogue=SAME),
    "2d_few_channels": named(NHWC, (1, 34, 34, 16), (3, 3, 16, 3), (1, 32, 32, 3)),
    "2d_i8": named(NHWC, (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32), kind="i8", out="i32"),
    "2d_f16": named(NHWC, (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32), kind="f16"),
    "2d_nchw": named(NCHW, (1, 16, 18, 18), (32, 16, 3, 3), (1, 32, 16, 16)),
    "2d_nchw_strided": named(NCHW, (1, 16, 33, 33), (32, 16, 3, 3), (1, 32, 16, 16), stride=2),
    "2d_nchw_filters_inside": generic(
        "pppprrr", FILTERS_INSIDE, (3, 5, 33, 29), (5, 3, 3, 21), (3, 16, 14, 21), epilogue=NCHW_RESULT
    ),
    "2d_nchw_filters_inside_padded": generic(
        "pppprrr",
        FILTERS_INSIDE,
        (1, 5, 33, 65),
        (5, 3, 3, 32),
        (1, 16, 32, 32),
        epilogue=NCHW_RESULT,
        padding=((0, 0), (0, 0), (1, 1), (1, 1)),
    ),
    "3d": named("conv_3d_ndhwc_dhwcf", (1, 6, 10, 10, 8), (3, 3, 3, 8, 16), (1, 4, 8, 8, 16)),
    "grouped_ngchw": named("conv_2d_ngchw_gfchw", (1, 4, 4, 18, 18), (4, 4, 4, 3, 3), (1, 4, 4, 16, 16)),
    "grouped_nhwgc": generic("ppppprrr", GROUPED, (1, 17, 17, 4, 8), (3, 3, 8, 4, 16), (1, 8, 8, 4, 16)),
    "depthwise": named(DEPTHWISE, (1, 18, 18, 32), (3, 3, 32), (1, 16, 16, 32)),
    "depthwise_strided": named(DEPTHWISE, (1, 33, 33, 24), (3, 3, 24), (1, 16, 16, 24), stride=2, epilogue=SAME),
    "depthwise_odd": named(DEPTHWISE, (1, 15, 13, 21), (3, 3, 21), (1, 13, 11, 21)),
    "depthwise_nchw": named("depthwise_conv_2d_nchw_chw", (1, 32, 18, 18), (32, 3, 3), (1, 32, 16, 16)),
    "depthwise_multiplier": named("depthwise_conv_2d_nhwc_hwcm", (1, 18, 18, 16), (3, 3, 16, 2), (1, 16, 16, 16, 2)),
    "1d_padded": named("conv_1d_nwc_wcf", (1, 35, 24), (3, 24, 32), (1, 33, 32), padding=((0, 0), (1, 1), (0, 0))),
    "2d_padded": named(
        NHWC, (1, 18, 18, 16), (3, 3, 16, 32), (1, 16, 16, 32), epilogue=SAME, padding=((0, 0), (1, 1), (1, 1), (0, 0))
    ),
    "2d_padded_strided": named(
        NHWC, (2, 31, 29, 3), (7, 7, 3, 21), (2, 13, 12, 21), stride=2, padding=((0, 0), (3, 2), (2, 3), (0, 0))
    ),
    "2d_padded_dilated": named(
        NHWC, (1, 20, 20, 8), (3, 3, 8, 32), (1, 16, 16, 32), dilation=2, padding=((0, 0), (2, 2), (2, 2), (0, 0))
    ),
    "2d_padded_i8": named(
        NHWC,
        (1, 18, 18, 16),
        (3, 3, 16, 32),
        (1, 16, 16, 32),
        kind="i8",
        out="i32",
        padding=((0, 0), (1, 1), (0, 2), (0, 0)),
    ),
    "3d_padded": named(
        "conv_3d_ndhwc_dhwcf",
        (1, 6, 10, 10, 8),
        (3, 3, 3, 8, 16),
        (1, 4, 8, 8, 16),
        padding=((0, 0), (1, 1), (1, 1), (1, 1), (0, 0)),
    ),
    "depthwise_padded": named(
        DEPTHWISE, (1, 18, 18, 32), (3, 3, 32), (1, 16, 16, 32), padding=((0, 0), (1, 1), (1, 1), (0, 0))
    ),
    "depthwise_padded_odd": named(
        DEPTHWISE,
        (1, 31, 29, 21),
        (3, 3, 21),
        (1, 15, 14, 21),
        stride=2,
        epilogue=SAME,
        padding=((0, 0), (1, 0), (0, 1), (0, 0)),
    ),
    "1d_odd": named("conv_1d_nwc_wcf", (3, 37, 7), (5, 7, 13), (3, 33, 13), epilogue="d0, d1, d2"),
    "2d_one_channel": named(NHWC, (1, 21, 21, 1), (5, 5, 1, 24), (1, 17, 17, 24)),
    "2d_narrow": named(NHWC, (1, 3, 67, 9), (3, 3, 9, 50), (1, 1, 65, 50), epilogue=SAME),
    "2d_stride_3": named(NHWC, (1, 26, 20, 6), (2, 2, 6, 33), (1, 9, 7, 33), stride=3),
    "2d_odd_batch": named(NHWC, (5, 8, 8, 11), (3, 3, 11, 17), (5, 6, 6, 17)),
    "2d_few_channels_padded": named(
        NHWC, (1, 18, 18, 8), (3, 3, 8, 5), (1, 16, 16, 5), padding=((0, 0), (1, 1), (0, 0), (0, 0))
    ),
    "2d_nchw_odd": named(NCHW, (3, 5, 15, 13), (7, 5, 3, 3), (3, 7, 13, 11)),
    "2d_nchw_padded_rows": named(
        NCHW, (1, 8, 18, 18), (16, 8, 3, 3), (1, 16, 16, 16), padding=((0, 0), (0, 0), (1, 1), (0, 0))
    ),
    "3d_odd_strided": named("conv_3d_ndhwc_dhwcf", (1, 7, 11, 9, 3), (3, 3, 3, 3, 10), (1, 3, 5, 4, 10), stride=2),
    "grouped_odd": named("conv_2d_ngchw_gfchw", (2, 3, 5, 11, 13), (3, 7, 5, 3, 3), (2, 3, 7, 9, 11)),
    "depthwise_dilated": named(DEPTHWISE, (3, 19, 17, 40), (3, 3, 40), (3, 15, 13, 40), dilation=2, epilogue=SAME),
    "depthwise_large_filter": named(DEPTHWISE, (1, 20, 20, 16), (7, 7, 16), (1, 14, 14, 16)),
    "transposed_in_phases": generic("ppppprrr", PHASES, (10, 10, 16), (2, 2, 2, 2, 16, 32), (8, 2, 8, 2, 32)),
}
"""One program per class of convolution."""
POOLINGS: dict[str, Payload] = {
    "max_pooling": pooling("pooling_nhwc_max", (1, 17, 17, 32), (1, 8, 8, 32), (3, 3), stride=2),
    "sum_pooling": pooling("pooling_nhwc_sum", (2, 10, 10, 24), (2, 8, 8, 24), (3, 3)),
    "max_pooling_nchw": pooling("pooling_nchw_max", (1, 16, 18, 18), (1, 16, 16, 16), (3, 3)),
    "max_pooling_nchw_strided": pooling("pooling_nchw_max", (1, 16, 33, 33), (1, 16, 16, 16), (3, 3), stride=2),
}
"""Poolings in both layouts, with and without strides."""
