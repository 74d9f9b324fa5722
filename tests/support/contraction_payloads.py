"""Products of matrices as small programs, one dispatch each: every layout, types, batches, epilogues."""

from __future__ import annotations

from payload_text import O3, Payload, filled, function, zero, zeros_above_diagonal


def matmul(m: int, n: int, k: int, kind: str = "f32", out: str = "") -> Payload:
    """Return C[m, n] = A[m, k] B[k, n]."""
    out = out or kind
    a, b, c = f"tensor<{m}x{k}x{kind}>", f"tensor<{k}x{n}x{kind}>", f"tensor<{m}x{n}x{out}>"
    body = f"""{filled("zero", c, zero(out))}
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}
  return %r : {c}"""
    return Payload(function(f"%a: {a}, %b: {b}", c, body))


def accumulating_matmul(m: int, n: int, k: int) -> Payload:
    """Return C += A B, without a fill."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""
  %r = linalg.matmul ins(%a, %b : {a}, {b}) outs(%c : {c}) -> {c}
  return %r : {c}"""
    return Payload(function(f"%a: {a}, %b: {b}, %c: {c}", c, body))


def batch_matmul_transposed_b(batch: int, m: int, n: int, k: int) -> Payload:
    """Return C[b, m, n] = A[b, m, k] B[b, n, k]."""
    a, b, c = f"tensor<{batch}x{m}x{k}xf32>", f"tensor<{batch}x{n}x{k}xf32>", f"tensor<{batch}x{m}x{n}xf32>"
    body = f"""{filled("zero", c, "0.0")}
  %r = linalg.generic {{indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>,
      affine_map<(b, m, n, k) -> (b, m, n)>], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}}
      ins(%a, %b : {a}, {b}) outs(%zero : {c}) {{
    ^bb0(%x: f32, %y: f32, %acc: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %acc, %p : f32
      linalg.yield %s : f32
  }} -> {c}
  return %r : {c}"""
    return Payload(function(f"%a: {a}, %b: {b}", c, body))


def mixed_contraction(
    extents: dict[str, int], maps: tuple[str, str, str], kind: str, fill: bool = True, narrow: bool = False
) -> Payload:
    """Return a contraction of f16 or bf16 into f32 or of i8 into i32, as a generic with the casts in its body.

    Args:
        extents: Trip count per loop, named by one letter.
        maps: The loops of both inputs and of the result.
        kind: Element type of the inputs.
        fill: Whether it starts from zeros, or from a third argument.
        narrow: Whether a second op gives the f32 result the inputs' type.
    """
    out, cast, multiply, add = {
        "f16": ("f32", "arith.extf", "arith.mulf", "arith.addf"),
        "bf16": ("f32", "arith.extf", "arith.mulf", "arith.addf"),
        "i8": ("i32", "arith.extsi", "arith.muli", "arith.addi"),
    }[kind]
    a, b, c = (
        f"tensor<{'x'.join(str(extents[loop]) for loop in loops)}x{element}>"
        for loops, element in zip(maps, (kind, kind, out), strict=True)
    )
    indexing = ", ".join(f"affine_map<({', '.join(extents)}) -> ({', '.join(loops)})>" for loops in maps)
    iterators = ", ".join('"parallel"' if loop in maps[2] else '"reduction"' for loop in extents)
    body = f"""{filled("start", c, zero(out)) if fill else ""}
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
        return Payload(function(arguments, c, f"{body}\n  return %r : {c}"))
    small, identity = c.replace("xf32", f"x{kind}"), f"affine_map<({', '.join(maps[2])}) -> ({', '.join(maps[2])})>"
    parallel = ", ".join(['"parallel"'] * len(maps[2]))
    body += f"""
  %e = tensor.empty() : {small}
  %n = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = [{parallel}]}}
      ins(%r : {c}) outs(%e : {small}) {{
    ^bb0(%x: f32, %o: {kind}):
      %t = arith.truncf %x : f32 to {kind}
      linalg.yield %t : {kind}
  }} -> {small}
  return %n : {small}"""
    return Payload(function(arguments, small, body))


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
    body = f"""{filled("zero", y, "0.0")}
  %r = linalg.matvec ins(%a, %x : {a}, {x}) outs(%zero : {y}) -> {y}
  return %r : {y}"""
    return Payload(function(f"%a: {a}, %x: {x}", y, body))


def matmul_bias_gelu(m: int, n: int, k: int) -> Payload:
    """Return gelu(A B + bias): a contraction with one fused element-wise op."""
    a, b, v, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""{filled("zero", c, "0.0")}
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
    return Payload(function(f"%a: {a}, %b: {b}, %v: {v}", c, body))


def matmul_two_epilogues(m: int, n: int, k: int) -> Payload:
    """Return transpose(max(A B + bias, 0)): the second epilogue walks the result in another order."""
    a, b, v, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{n}xf32>", f"tensor<{m}x{n}xf32>"
    t = f"tensor<{n}x{m}xf32>"
    body = f"""{filled("zero", c, "0.0")}
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
    return Payload(function(f"%a: {a}, %b: {b}, %v: {v}", t, body))


def product_of_pixels(extents: dict[str, int], maps: tuple[str, str, str], both: bool = False) -> Payload:
    """Return max(A B + bias, 0), the bias along ``n``: the product of a 1x1 convolution in any layout.

    Args:
        extents: Trip count per loop, named by one letter, in the order of the loops.
        maps: The loops of both inputs and of the result.
        both: Whether A B is a result, too; both are one dispatch under ``O3``.
    """
    a, b, c = (f"tensor<{'x'.join(str(extents[loop]) for loop in loops)}xf32>" for loops in maps)
    v, made = f"tensor<{extents['n']}xf32>", ", ".join(maps[2])
    indexing = ", ".join(f"affine_map<({', '.join(extents)}) -> ({', '.join(loops)})>" for loops in maps)
    iterators = ", ".join('"parallel"' if loop in maps[2] else '"reduction"' for loop in extents)
    parallel = ", ".join(['"parallel"'] * len(maps[2]))
    body = f"""{filled("zero", c, "0.0")}
  %mm = linalg.generic {{indexing_maps = [{indexing}], iterator_types = [{iterators}]}}
      ins(%a, %b : {a}, {b}) outs(%zero : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %p = arith.mulf %x, %y : f32
      %s = arith.addf %o, %p : f32
      linalg.yield %s : f32
  }} -> {c}
  %r = linalg.generic {{indexing_maps = [affine_map<({made}) -> ({made})>, affine_map<({made}) -> (n)>,
      affine_map<({made}) -> ({made})>], iterator_types = [{parallel}]}}
      ins(%mm, %v : {c}, {v}) outs(%zero_empty : {c}) {{
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      %m = arith.maximumf %s, %zero_value : f32
      linalg.yield %m : f32
  }} -> {c}
  return {f"%mm, %r : {c}, {c}" if both else f"%r : {c}"}"""
    results = f"({c}, {c})" if both else c
    return Payload(function(f"%a: {a}, %b: {b}, %v: {v}", results, body), O3 if both else ())


def product_over_heads(m: int, n: int, heads: int, features: int) -> Payload:
    """Return the sum over heads and their features of A B, plus a bias: a reduction of two loops."""
    a, b, v, c = f"{heads}x{m}x{features}", f"{heads}x{features}x{n}", f"tensor<{n}xf32>", f"tensor<{m}x{n}xf32>"
    a, b = f"tensor<{a}xf32>", f"tensor<{b}xf32>"
    body = f"""{filled("zero", c, "0.0")}
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
    return Payload(function(f"%a: {a}, %b: {b}, %v: {v}", c, body))


def matmul_below_diagonal(m: int, n: int, k: int) -> Payload:
    """Return A B with zeros above the diagonal: an epilogue that computes with loop indices, as a causal mask does."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""{filled("zero", c, "0.0")}
  %mm = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}{zeros_above_diagonal("mm", "zero_empty", c)}
  return %r : {c}"""
    return Payload(function(f"%a: {a}, %b: {b}", c, body))


def matmul_and_relu(m: int, n: int, k: int) -> Payload:
    """Return A B and max(A B, 0), which are one dispatch under ``O3``."""
    a, b, c = f"tensor<{m}x{k}xf32>", f"tensor<{k}x{n}xf32>", f"tensor<{m}x{n}xf32>"
    body = f"""{filled("zero", c, "0.0")}
  %mm = linalg.matmul ins(%a, %b : {a}, {b}) outs(%zero : {c}) -> {c}
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%mm : {c}) outs(%zero_empty : {c}) {{
    ^bb0(%x: f32, %o: f32):
      %s = arith.maximumf %x, %zero_value : f32
      linalg.yield %s : f32
  }} -> {c}
  return %mm, %r : {c}, {c}"""
    return Payload(function(f"%a: {a}, %b: {b}", f"({c}, {c})", body), O3)
