"""Small programs, one dispatch each, that the tests of the language and of the transform modules schedule."""

from __future__ import annotations

from contraction_payloads import (
    accumulating_matmul,
    batch_matmul_transposed_b,
    matmul,
    matmul_below_diagonal,
    matmul_bias_gelu,
    matmul_two_epilogues,
    matvec,
    product_of_pixels,
    product_over_heads,
    vecmat,
)
from payload_text import O3, Payload, filled, function, zeros_above_diagonal


def below_diagonal(rows: int, columns: int) -> Payload:
    """Return a matrix with zeros above the diagonal."""
    a = f"tensor<{rows}x{columns}xf32>"
    body = f"""
  %zero_value = arith.constant 0.0 : f32
  %e = tensor.empty() : {a}{zeros_above_diagonal("a", "e", a)}
  return %r : {a}"""
    return Payload(function(f"%a: {a}", a, body))


def sine_and_cosine(rows: int, columns: int) -> Payload:
    """Return sin(x) and cos(x), both of one element-wise op."""
    a, identity = f"tensor<{rows}x{columns}xf32>", "affine_map<(i, j) -> (i, j)>"
    body = f"""
  %e = tensor.empty() : {a}
  %r:2 = linalg.generic {{indexing_maps = [{identity}, {identity}, {identity}],
      iterator_types = ["parallel", "parallel"]}} ins(%x : {a}) outs(%e, %e : {a}, {a}) {{
    ^bb0(%v: f32, %o: f32, %p: f32):
      %s = math.sin %v : f32
      %c = math.cos %v : f32
      linalg.yield %s, %c : f32, f32
  }} -> ({a}, {a})
  return %r#0, %r#1 : {a}, {a}"""
    return Payload(function(f"%x: {a}", f"({a}, {a})", body))


def moments(rows: int, columns: int) -> Payload:
    """Return the sum and the sum of squares of every row, both of one reduction."""
    a, r, row = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>", "affine_map<(i, j) -> (i)>"
    body = f"""{filled("zero", r, "0.0")}
  %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {row}, {row}],
      iterator_types = ["parallel", "reduction"]}} ins(%x : {a}) outs(%zero, %zero : {r}, {r}) {{
    ^bb0(%v: f32, %o: f32, %p: f32):
      %s = arith.addf %o, %v : f32
      %q = arith.mulf %v, %v : f32
      %t = arith.addf %p, %q : f32
      linalg.yield %s, %t : f32, f32
  }} -> ({r}, {r})
  return %r#0, %r#1 : {r}, {r}"""
    return Payload(function(f"%x: {a}", f"({r}, {r})", body))


def row_sum(rows: int, columns: int) -> Payload:
    """Return the sum of every row."""
    return _sum(rows, columns, along=1)


def column_sum(rows: int, columns: int) -> Payload:
    """Return the sum of every column."""
    return _sum(rows, columns, along=0)


def _sum(rows: int, columns: int, *, along: int) -> Payload:
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{(columns, rows)[along]}xf32>"
    body = f"""{filled("zero", r, "0.0")}
  %r = linalg.reduce ins(%a : {a}) outs(%zero : {r}) dimensions = [{along}] (%x: f32, %acc: f32) {{
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  }}
  return %r : {r}"""
    return Payload(function(f"%a: {a}", r, body))


def softmax(batch: int, rows: int, columns: int) -> Payload:
    """Return a softmax over the last dimension."""
    a = f"tensor<{batch}x{rows}x{columns}xf32>"
    body = f"""
  %e = tensor.empty() : {a}
  %r = linalg.softmax dimension(2) ins(%a : {a}) outs(%e : {a}) -> {a}
  return %r : {a}"""
    return Payload(function(f"%a: {a}", a, body))


def layernorm(rows: int, columns: int) -> Payload:
    """Return a layer normalisation of every row; needs O3 to be one dispatch."""
    x, r, w = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>", f"tensor<{columns}xf32>"
    both = '["parallel", "parallel"]'
    body = f"""{filled("zero", r, "0.0")}
  %e = tensor.empty() : {x}
  %count = arith.constant {float(columns)} : f32
  %epsilon = arith.constant 1.0e-5 : f32
  %sum = linalg.reduce ins(%x : {x}) outs(%zero : {r}) dimensions = [1] (%v: f32, %acc: f32) {{
    %s = arith.addf %v, %acc : f32
    linalg.yield %s : f32
  }}
  %centred = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = {both}}} ins(%x, %sum : {x}, {r}) outs(%e : {x}) {{
    ^bb0(%v: f32, %s: f32, %o: f32):
      %m = arith.divf %s, %count : f32
      %d = arith.subf %v, %m : f32
      linalg.yield %d : f32
  }} -> {x}
  %squares = linalg.reduce ins(%centred : {x}) outs(%zero : {r}) dimensions = [1] (%v: f32, %acc: f32) {{
    %q = arith.mulf %v, %v : f32
    %s = arith.addf %q, %acc : f32
    linalg.yield %s : f32
  }}
  %y = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = {both}}}
      ins(%centred, %squares, %g, %b : {x}, {r}, {w}, {w}) outs(%e : {x}) {{
    ^bb0(%c: f32, %q: f32, %gain: f32, %bias: f32, %o: f32):
      %v = arith.divf %q, %count : f32
      %ve = arith.addf %v, %epsilon : f32
      %i = math.rsqrt %ve : f32
      %n = arith.mulf %c, %i : f32
      %s = arith.mulf %n, %gain : f32
      %t = arith.addf %s, %bias : f32
      linalg.yield %t : f32
  }} -> {x}
  return %y : {x}"""
    return Payload(function(f"%x: {x}, %g: {w}, %b: {w}", x, body), O3)


def sum_of_squares(size: int) -> Payload:
    """Return the sum of squares of a vector: a scalar."""
    a, r = f"tensor<{size}xf32>", "tensor<f32>"
    body = f"""{filled("zero", r, "0.0")}
  %r = linalg.reduce ins(%a : {a}) outs(%zero : {r}) dimensions = [0] (%x: f32, %acc: f32) {{
    %q = arith.mulf %x, %x : f32
    %s = arith.addf %q, %acc : f32
    linalg.yield %s : f32
  }}
  return %r : {r}"""
    return Payload(function(f"%a: {a}", r, body))


def elementwise_chain(rows: int, columns: int) -> Payload:
    """Return exp(a + b) * v, with v along the columns."""
    a, v = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}xf32>"
    body = f"""
  %e = tensor.empty() : {a}
  %x = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %b : {a}, {a}) outs(%e : {a}) {{
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      %t = math.exp %s : f32
      linalg.yield %t : f32
  }} -> {a}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %v : {a}, {v}) outs(%e : {a}) {{
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      linalg.yield %m : f32
  }} -> {a}
  return %r : {a}"""
    return Payload(function(f"%a: {a}, %b: {a}, %v: {v}", a, body))


def transpose(rows: int, columns: int) -> Payload:
    """Return relu of the transpose."""
    a, t = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{rows}xf32>"
    body = f"""
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {t}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%a : {a}) outs(%e : {t}) {{
    ^bb0(%x: f32, %o: f32):
      %m = arith.maximumf %x, %zero : f32
      linalg.yield %m : f32
  }} -> {t}
  return %r : {t}"""
    return Payload(function(f"%a: {a}", t, body))


def every_other_pixel(rows: int, columns: int, channels: int) -> Payload:
    """Return relu of every other row and column of an image, as a convolution with one tap and strides reads it."""
    a, r = f"tensor<{2 * rows}x{2 * columns}x{channels}xf32>", f"tensor<{rows}x{columns}x{channels}xf32>"
    body = f"""
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : {r}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j, c) -> (i * 2, j * 2, c)>,
      affine_map<(i, j, c) -> (i, j, c)>], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%a : {a}) outs(%e : {r}) {{
    ^bb0(%x: f32, %o: f32):
      %m = arith.maximumf %x, %zero : f32
      linalg.yield %m : f32
  }} -> {r}
  return %r : {r}"""
    return Payload(function(f"%a: {a}", r, body))


def vector_add(size: int) -> Payload:
    """Return a + b of two vectors."""
    a = f"tensor<{size}xf32>"
    body = f"""
  %e = tensor.empty() : {a}
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]}} ins(%a, %b : {a}, {a}) outs(%e : {a}) {{
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
  }} -> {a}
  return %r : {a}"""
    return Payload(function(f"%a: {a}, %b: {a}", a, body))


def widened_bytes(rows: int, columns: int) -> Payload:
    """Return signed bytes as 32-bit integers."""
    a, r = f"tensor<{rows}x{columns}xi8>", f"tensor<{rows}x{columns}xi32>"
    body = f"""
  %e = tensor.empty() : {r}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%a : {a}) outs(%e : {r}) {{
    ^bb0(%x: i8, %o: i32):
      %w = arith.extsi %x : i8 to i32
      linalg.yield %w : i32
  }} -> {r}
  return %r : {r}"""
    return Payload(function(f"%a: {a}", r, body))


def permuted_add(a: int, b: int, c: int, d: int) -> Payload:
    """Return x + y of four loops, with y stored in another order of its dimensions."""
    x, y = f"tensor<{a}x{b}x{c}x{d}xf32>", f"tensor<{c}x{a}x{d}x{b}xf32>"
    body = f"""
  %e = tensor.empty() : {x}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j, k, l) -> (i, j, k, l)>,
      affine_map<(i, j, k, l) -> (k, i, l, j)>, affine_map<(i, j, k, l) -> (i, j, k, l)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}} ins(%x, %y : {x}, {y}) outs(%e : {x}) {{
    ^bb0(%p: f32, %q: f32, %o: f32):
      %s = arith.addf %p, %q : f32
      linalg.yield %s : f32
  }} -> {x}
  return %r : {x}"""
    return Payload(function(f"%x: {x}, %y: {y}", x, body))


def row_sum_then_scale(rows: int, columns: int) -> Payload:
    """Return x * sum(x) per row: one reduction read by an element-wise root of another rank."""
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    body = f"""{filled("zero", r, "0.0")}
  %e = tensor.empty() : {a}
  %sum = linalg.reduce ins(%a : {a}) outs(%zero : {r}) dimensions = [1] (%x: f32, %acc: f32) {{
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  }}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%a, %sum : {a}, {r}) outs(%e : {a}) {{
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      linalg.yield %m : f32
  }} -> {a}
  return %r : {a}"""
    return Payload(function(f"%a: {a}", a, body), O3)


def independent_ops(rows: int, columns: int) -> Payload:
    """Return exp(y) * sum(exp(y)) - sum(x) per row in one dispatch, whose root reads its ops in another order.

    In the dispatch sum(x) comes first; the root reads the exponentials first. IREE puts such ops into several
    dispatches; what a program says to be a dispatch is left as it is.
    """
    x, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    whole, row = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"

    def reduced(name: str, operand: str) -> str:
        return f"""
    %{name} = linalg.generic {{indexing_maps = [{whole}, {row}], iterator_types = ["parallel", "reduction"]}}
        ins(%{operand} : {x}) outs(%zero : {r}) {{
      ^bb0(%v: f32, %acc: f32):
        %s = arith.addf %v, %acc : f32
        linalg.yield %s : f32
    }} -> {r}"""

    body = f"""
  %all = flow.dispatch.region -> ({x}) {{{filled("zero", r, "0.0")}
    %e = tensor.empty() : {x}{reduced("sum", "x")}
    %exp = linalg.generic {{indexing_maps = [{whole}, {whole}], iterator_types = ["parallel", "parallel"]}}
        ins(%y : {x}) outs(%e : {x}) {{
      ^bb0(%v: f32, %o: f32):
        %w = math.exp %v : f32
        linalg.yield %w : f32
    }} -> {x}{reduced("total", "exp")}
    %r = linalg.generic {{indexing_maps = [{whole}, {row}, {row}, {whole}], iterator_types = ["parallel", "parallel"]}}
        ins(%exp, %total, %sum : {x}, {r}, {r}) outs(%e : {x}) {{
      ^bb0(%v: f32, %t: f32, %s: f32, %o: f32):
        %m = arith.mulf %v, %t : f32
        %d = arith.subf %m, %s : f32
        linalg.yield %d : f32
    }} -> {x}
    flow.return %r : {x}
  }}
  return %all : {x}"""
    return Payload(function(f"%x: {x}, %y: {x}", x, body))


PAYLOADS: dict[str, Payload] = {
    "matmul": matmul(64, 48, 80),
    "matmul_uneven": matmul(17, 33, 65),
    "matmul_100": matmul(100, 100, 100),
    "matmul_accumulating": accumulating_matmul(32, 64, 48),
    "matmul_i8": matmul(32, 64, 48, "i8", "i32"),
    "matmul_f16": matmul(32, 64, 48, "f16"),
    "matmul_bf16": matmul(32, 64, 48, "bf16", "f32"),
    "batch_matmul_bt": batch_matmul_transposed_b(3, 32, 48, 64),
    "vecmat": vecmat(512, 256),
    "matvec": matvec(256, 512),
    "bias_gelu": matmul_bias_gelu(48, 96, 64),
    "two_epilogues": matmul_two_epilogues(48, 96, 64),
    "channels_first_product": product_of_pixels({"n": 29, "m": 52, "k": 24}, ("km", "nk", "nm")),
    "product_to_channels_first": product_of_pixels({"n": 29, "m": 52, "k": 24}, ("mk", "nk", "nm")),
    "product_of_images": product_of_pixels({"b": 3, "m": 10, "n": 52, "k": 24}, ("bkm", "nk", "bmn")),
    "below_diagonal_product": matmul_below_diagonal(48, 96, 64),
    "below_diagonal_product_uneven": matmul_below_diagonal(17, 33, 65),
    "product_over_heads": product_over_heads(48, 96, 4, 16),
    "product_over_heads_uneven": product_over_heads(17, 33, 3, 15),
    "moments": moments(96, 160),
    "moments_uneven": moments(53, 67),
    "row_sum": row_sum(96, 512),
    "softmax": softmax(4, 32, 128),
    "layernorm": layernorm(64, 768),
    "scale_rows": row_sum_then_scale(64, 384),
    "sum_of_squares": sum_of_squares(4096),
    "elementwise_chain": elementwise_chain(96, 384),
    "below_diagonal": below_diagonal(96, 160),
    "below_diagonal_uneven": below_diagonal(53, 67),
    "sine_and_cosine": sine_and_cosine(48, 96),
    "transpose": transpose(192, 160),
    "every_other_pixel": every_other_pixel(14, 14, 64),
    "vector_add": vector_add(65536),
    "vector_add_uneven": vector_add(1000003),
}
"""One program per class of dispatch, small enough to compile and run many candidates."""


def rows_of_a_table(table: int, ids: int, columns: int) -> Payload:
    """Return the rows of a table that ids name."""
    t, i, r = f"tensor<{table}x{columns}xf32>", f"tensor<{ids}xi64>", f"tensor<{ids}x{columns}xf32>"
    body = f"""
  %e = tensor.empty() : {r}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%i : {i}) outs(%e : {r}) {{
    ^bb0(%id: i64, %o: f32):
      %row = arith.index_cast %id : i64 to index
      %column = linalg.index 1 : index
      %v = tensor.extract %t[%row, %column] : {t}
      linalg.yield %v : f32
  }} -> {r}
  return %r : {r}"""
    return Payload(function(f"%t: {t}, %i: {i}", r, body))
