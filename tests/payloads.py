"""Small programs, one dispatch each, that the tests of the language and of the transform modules schedule."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Payload:
    """A program as text, with the compiler flags it needs to become one dispatch."""

    text: str
    flags: tuple[str, ...] = ()


O3 = ("--iree-opt-level=O3",)


def _zero(kind: str) -> str:
    return "0.0" if "f" in kind else "0"


def _filled(name: str, type_: str, value: str) -> str:
    scalar = type_.removeprefix("tensor<").split("x")[-1].rstrip(">")
    return f"""
  %{name}_value = arith.constant {value} : {scalar}
  %{name}_empty = tensor.empty() : {type_}
  %{name} = linalg.fill ins(%{name}_value : {scalar}) outs(%{name}_empty : {type_}) -> {type_}"""


def _function(arguments: str, result: str, body: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{{body}\n}}\n"


def matmul(m: int, n: int, k: int, kind: str = "f32", out: str = "") -> Payload:
    """Return C[m, n] = A[m, k] B[k, n]."""
    out = out or kind
    a, b, c = f"tensor<{m}x{k}x{kind}>", f"tensor<{k}x{n}x{kind}>", f"tensor<{m}x{n}x{out}>"
    body = f"""{_filled("zero", c, _zero(out))}
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}
  return %r : {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}", c, body))


def accumulating_matmul(m: int, n: int, k: int) -> Payload:
    """Return C += A B, without a fill."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %r : {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}, %c: {c}", c, body))


def batch_matmul_transposed_b(batch: int, m: int, n: int, k: int) -> Payload:
    """Return C[b, m, n] = A[b, m, k] B[b, n, k]."""
    a, b, c = f"tensor<{batch}x{m}x{k}xf32>", f"tensor<{batch}x{n}x{k}xf32>", f"tensor<{batch}x{m}x{n}xf32>"
    body = f"""{_filled("zero", c, "0.0")}
  %r = linalg.generic {{indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
      affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%zero : {c}) {{
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  }} -> {c}
  return %r : {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}", c, body))


def mixed_contraction(
    extents: dict[str, int], maps: tuple[str, str, str], kind: str, fill: bool = True, narrow: bool = False
) -> Payload:
    """Return a contraction of bf16 into f32 or of i8 into i32, as a generic with the casts in its body.

    Args:
        extents: Trip count per loop, named by one letter.
        maps: The loops of both inputs and of the result.
        kind: Element type of the inputs.
        fill: Whether it starts from zeros, or from a third argument.
        narrow: Whether a second op makes the f32 result bf16.
    """
    out, cast, multiply, add = {
        "bf16": ("f32", "arith.extf", "arith.mulf", "arith.addf"),
        "i8": ("i32", "arith.extsi", "arith.muli", "arith.addi"),
    }[kind]
    a, b, c = (
        f"tensor<{'x'.join(str(extents[loop]) for loop in loops)}x{element}>"
        for loops, element in zip(maps, (kind, kind, out), strict=True)
    )
    indexing = ", ".join(f"affine_map<({', '.join(extents)}) -> ({', '.join(loops)})>" for loops in maps)
    iterators = ", ".join('"parallel"' if loop in maps[2] else '"reduction"' for loop in extents)
    body = f"""{_filled("start", c, _zero(out)) if fill else ""}
  %r = linalg.generic {{indexing_maps = [{indexing}], iterator_types = [{iterators}]}}
      ins(%a, %b : {a}, {b}) outs(%start : {c}) {{
    ^bb0(%x: {kind}, %y: {kind}, %acc: {out}):
      %p = {cast} %x : {kind} to {out}
      %q = {cast} %y : {kind} to {out}
      %m = {multiply} %p, %q : {out}
      %s = {add} %acc, %m : {out}
      linalg.yield %s : {out}
  }} -> {c}"""
    arguments = f"%a: {a}, %b: {b}" + ("" if fill else f", %start: {c}")
    if not narrow:
        return Payload(_function(arguments, c, f"{body}\n  return %r : {c}"))
    small, identity = c.replace("xf32", "xbf16"), f"affine_map<({', '.join(maps[2])}) -> ({', '.join(maps[2])})>"
    parallel = ", ".join(['"parallel"'] * len(maps[2]))
    body += f"""
  %e = tensor.empty() : {small}
  %n = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{parallel}]}}
      ins(%r : {c}) outs(%e : {small}) {{
    ^bb0(%x: f32, %o: bf16):
      %t = arith.truncf %x : f32 to bf16
      linalg.yield %t : bf16
  }} -> {small}
  return %n : {small}"""
    return Payload(_function(arguments, small, body))


def dot_products(kind: str) -> dict[str, Payload]:
    """Return contractions of bf16 or i8 that dot-product instructions compute, by name.

    The reductions of 40 and 68 bytes end within the vectors that sum rows.
    """
    programs = {
        "matmul": matmul(24, 64, 136, kind, "f32" if kind == "bf16" else "i32"),
        "transposed_b": mixed_contraction({"m": 12, "n": 48, "k": 40}, ("mk", "nk", "mn"), kind),
        "heads": mixed_contraction({"b": 2, "h": 3, "m": 8, "n": 32, "k": 32}, ("bmhk", "bnhk", "bhmn"), kind),
        "two_reductions": mixed_contraction({"m": 8, "n": 32, "j": 3, "k": 16}, ("mjk", "jkn", "mn"), kind),
        "prime_rows": mixed_contraction({"m": 17, "n": 32, "k": 68}, ("mk", "kn", "mn"), kind),
        "accumulating": mixed_contraction({"m": 30, "n": 48, "k": 40}, ("mk", "kn", "mn"), kind, fill=False),
    }
    if kind == "bf16":
        programs["narrowed"] = mixed_contraction({"m": 24, "n": 48, "k": 40}, ("mk", "kn", "mn"), kind, narrow=True)
    return programs


def vecmat(n: int, k: int) -> Payload:
    """Return y[1, n] = x[1, k] A[k, n]: the reduction strides over the matrix."""
    return matmul(1, n, k)


def matvec(m: int, k: int) -> Payload:
    """Return y[m] = A[m, k] x[k]: the reduction is contiguous in the matrix."""
    a, x, y = f"tensor<{m}x{k}xf32>", f"tensor<{k}xf32>", f"tensor<{m}xf32>"
    body = f"""{_filled("zero", y, "0.0")}
  %r = linalg.matvec ins(%a, %x : {a}, {x}) outs(%zero : {y}) -> {y}
  return %r : {y}"""
    return Payload(_function(f"%a: {a}, %x: {x}", y, body))


def matmul_bias_gelu(m: int, n: int, k: int) -> Payload:
    """Return gelu(A B + bias): a contraction with one fused element-wise op."""
    a, b, v, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""{_filled("zero", c, "0.0")}
  %mm = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}
  %half = arith.constant 0.5 : f32
  %one = arith.constant 1.0 : f32
  %scale = arith.constant 0.70710678 : f32
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%mm, %v : {c}, {v}) outs(%zero_empty : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      %t = arith.mulf %s, %scale : f32
      %e = math.erf %t : f32
      %f = arith.addf %e, %one : f32
      %g = arith.mulf %s, %half : f32
      %h = arith.mulf %f, %g : f32
      linalg.yield %h : f32
  }} -> {c}
  return %r : {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}, %v: {v}", c, body))


def matmul_two_epilogues(m: int, n: int, k: int) -> Payload:
    """Return transpose(max(A B + bias, 0)): the second epilogue walks the result in another order."""
    a, b, v, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{n}xf32>", f"tensor<{m}x{n}xf32>"
    t = f"tensor<{n}x{m}xf32>"
    body = f"""{_filled("zero", c, "0.0")}
  %mm = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}
  %biased = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%mm, %v : {c}, {v}) outs(%zero_empty : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      %m = arith.maximumf %s, %zero_value : f32
      linalg.yield %m : f32
  }} -> {c}
  %te = tensor.empty() : {t}
  %r = linalg.transpose ins(%biased : {c}) outs(%te : {t}) permutation = [1, 0]
  return %r : {t}"""
    return Payload(_function(f"%a: {a}, %b: {b}, %v: {v}", t, body))


def product_over_heads(m: int, n: int, heads: int, features: int) -> Payload:
    """Return the sum over heads and their features of A B, plus a bias: a reduction of two loops."""
    a, b, v, c = f"{heads}x{m}x{features}", f"{heads}x{features}x{n}", f"tensor<{n}xf32>", f"tensor<{m}x{n}xf32>"
    a, b = f"tensor<{a}xf32>", f"tensor<{b}xf32>"
    body = f"""{_filled("zero", c, "0.0")}
  %mm = linalg.generic {{indexing_maps = [affine_map<(i, j, h, k) -> (h, i, k)>, affine_map<(i, j, h, k) -> (h, k, j)>,
      affine_map<(i, j, h, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%zero : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
  }} -> {c}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}}
      ins(%mm, %v : {c}, {v}) outs(%zero_empty : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      linalg.yield %s : f32
  }} -> {c}
  return %r : {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}, %v: {v}", c, body))


def matmul_below_diagonal(m: int, n: int, k: int) -> Payload:
    """Return A B with zeros above the diagonal: an epilogue that computes with loop indices, as a causal mask does."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""{_filled("zero", c, "0.0")}
  %mm = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}{_below_diagonal("mm", "zero_empty", c)}
  return %r : {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}", c, body))


def below_diagonal(rows: int, columns: int) -> Payload:
    """Return a matrix with zeros above the diagonal."""
    a = f"tensor<{rows}x{columns}xf32>"
    body = f"""
  %zero_value = arith.constant 0.0 : f32
  %e = tensor.empty() : {a}{_below_diagonal("a", "e", a)}
  return %r : {a}"""
    return Payload(_function(f"%a: {a}", a, body))


def _below_diagonal(source: str, init: str, type_: str) -> str:
    return f"""
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%{source} : {type_}) outs(%{init} : {type_}) {{
    ^bb0(%x: f32, %o: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.cmpi sge, %i, %j : index
      %s = arith.select %c, %x, %zero_value : f32
      linalg.yield %s : f32
  }} -> {type_}"""


def matmul_and_relu(m: int, n: int, k: int) -> Payload:
    """Return A B and max(A B, 0), which are one dispatch under ``O3``."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""{_filled("zero", c, "0.0")}
  %mm = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%mm : {c}) outs(%zero_empty : {c}) {{
    ^bb0(%x: f32, %o: f32):
      %s = arith.maximumf %x, %zero_value : f32
      linalg.yield %s : f32
  }} -> {c}
  return %mm, %r : {c}, {c}"""
    return Payload(_function(f"%a: {a}, %b: {b}", f"({c}, {c})", body), O3)


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
    return Payload(_function(f"%x: {a}", f"({a}, {a})", body))


def moments(rows: int, columns: int) -> Payload:
    """Return the sum and the sum of squares of every row, both of one reduction."""
    a, r, row = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>", "affine_map<(i, j) -> (i)>"
    body = f"""{_filled("zero", r, "0.0")}
  %r:2 = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, {row}, {row}],
      iterator_types = ["parallel", "reduction"]}} ins(%x : {a}) outs(%zero, %zero : {r}, {r}) {{
    ^bb0(%v: f32, %o: f32, %p: f32):
      %s = arith.addf %o, %v : f32
      %q = arith.mulf %v, %v : f32
      %t = arith.addf %p, %q : f32
      linalg.yield %s, %t : f32, f32
  }} -> ({r}, {r})
  return %r#0, %r#1 : {r}, {r}"""
    return Payload(_function(f"%x: {a}", f"({r}, {r})", body))


def row_sum(rows: int, columns: int) -> Payload:
    """Return the sum of every row."""
    return _sum(rows, columns, along=1)


def column_sum(rows: int, columns: int) -> Payload:
    """Return the sum of every column."""
    return _sum(rows, columns, along=0)


def _sum(rows: int, columns: int, *, along: int) -> Payload:
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{(columns, rows)[along]}xf32>"
    body = f"""{_filled("zero", r, "0.0")}
  %r = linalg.reduce ins(%a : {a}) outs(%zero : {r}) dimensions = [{along}] (%x: f32, %acc: f32) {{
    %s = arith.addf %x, %acc : f32
    linalg.yield %s : f32
  }}
  return %r : {r}"""
    return Payload(_function(f"%a: {a}", r, body))


def softmax(batch: int, rows: int, columns: int) -> Payload:
    """Return a softmax over the last dimension."""
    a = f"tensor<{batch}x{rows}x{columns}xf32>"
    body = f"""
  %e = tensor.empty() : {a}
  %r = linalg.softmax dimension(2) ins(%a : {a}) outs(%e : {a}) -> {a}
  return %r : {a}"""
    return Payload(_function(f"%a: {a}", a, body))


def layernorm(rows: int, columns: int) -> Payload:
    """Return a layer normalisation of every row; needs O3 to be one dispatch."""
    x, r, w = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>", f"tensor<{columns}xf32>"
    both = '["parallel", "parallel"]'
    body = f"""{_filled("zero", r, "0.0")}
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
    return Payload(_function(f"%x: {x}, %g: {w}, %b: {w}", x, body), O3)


def sum_of_squares(size: int) -> Payload:
    """Return the sum of squares of a vector: a scalar."""
    a, r = f"tensor<{size}xf32>", "tensor<f32>"
    body = f"""{_filled("zero", r, "0.0")}
  %r = linalg.reduce ins(%a : {a}) outs(%zero : {r}) dimensions = [0] (%x: f32, %acc: f32) {{
    %q = arith.mulf %x, %x : f32
    %s = arith.addf %q, %acc : f32
    linalg.yield %s : f32
  }}
  return %r : {r}"""
    return Payload(_function(f"%a: {a}", r, body))


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
    return Payload(_function(f"%a: {a}, %b: {a}, %v: {v}", a, body))


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
    return Payload(_function(f"%a: {a}", t, body))


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
    return Payload(_function(f"%a: {a}", r, body))


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
    return Payload(_function(f"%a: {a}, %b: {a}", a, body))


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
    return Payload(_function(f"%a: {a}", r, body))


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
    return Payload(_function(f"%x: {x}, %y: {y}", x, body))


def row_sum_then_scale(rows: int, columns: int) -> Payload:
    """Return x * sum(x) per row: one reduction read by an element-wise root of another rank."""
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    body = f"""{_filled("zero", r, "0.0")}
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
    return Payload(_function(f"%a: {a}", a, body), O3)


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
  %all = flow.dispatch.region -> ({x}) {{{_filled("zero", r, "0.0")}
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
    return Payload(_function(f"%x: {x}, %y: {x}", x, body))


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
