"""Programs that are one dispatch under ``O3``, which stores the results of several ops."""

from __future__ import annotations

from contraction_payloads import matmul_and_relu, product_of_pixels
from payload_text import O3, Payload, filled, function

ALL, ROW = "affine_map<(i, j) -> (i, j)>", "affine_map<(i, j) -> (i)>"


def _generic(name: str, maps: list[str], reduces: bool, operands: str, init: str, types: str, body: str) -> str:
    """Return an op on f32 with inputs ``%x0``, ``%x1``, ... and accumulator ``%o`` that makes ``%v``."""
    inner = "reduction" if reduces else "parallel"
    inputs, made = types.split(" -> ")
    arguments = ", ".join(f"%x{number}: f32" for number in range(len(maps) - 1))
    return f"""
  %{name} = linalg.generic {{indexing_maps = [{", ".join(maps)}], iterator_types = ["parallel", "{inner}"]}}
      ins({operands} : {inputs}) outs({init} : {made}) {{
    ^bb0({arguments}, %o: f32):
      {body}
      linalg.yield %v : f32
  }} -> {made}"""


def _sum(rows: int, columns: int) -> str:
    """Return x + y and its sums of squares by rows."""
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    square = "%w = arith.mulf %x0, %x0 : f32\n      %v = arith.addf %w, %o : f32"
    return f"""{filled("zero", r, "0.0")}
  %e = tensor.empty() : {a}
  {_generic("s", [ALL] * 3, False, "%x, %y", "%e", f"{a}, {a} -> {a}", "%v = arith.addf %x0, %x1 : f32")}
  {_generic("q", [ALL, ROW], True, "%s", "%zero", f"{a} -> {r}", square)}"""


def sum_and_squares(rows: int, columns: int) -> Payload:
    """Return x + y, and the sum of squares of each of its rows."""
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    return Payload(
        function(f"%x: {a}, %y: {a}", f"({a}, {r})", f"{_sum(rows, columns)}\n  return %s, %q : {a}, {r}"), O3
    )


def sum_and_norm(rows: int, columns: int) -> Payload:
    """Return x + y, which two ops read, and its RMS norm: two results of one type."""
    a, r = f"tensor<{rows}x{columns}xf32>", f"tensor<{rows}xf32>"
    scale = "%m = arith.addf %x1, %one : f32\n      %k = math.rsqrt %m : f32\n      %v = arith.mulf %x0, %k : f32"
    body = f"""
  %one = arith.constant 1.0 : f32{_sum(rows, columns)}
  {_generic("n", [ALL, ROW, ALL], False, "%s, %q", "%e", f"{a}, {r} -> {a}", scale)}
  return %s, %n : {a}, {a}"""
    return Payload(function(f"%x: {a}, %y: {a}", f"({a}, {a})", body), O3)


def exponentials(outer: int, middle: int, inner: int) -> Payload:
    """Return exp(x) and its sums along the middle dimension: vectors lie across the sums."""
    a, r = f"tensor<{outer}x{middle}x{inner}xf32>", f"tensor<{outer}x{inner}xf32>"
    all_, kept = "affine_map<(i, j, k) -> (i, j, k)>", "affine_map<(i, j, k) -> (i, k)>"
    body = f"""{filled("zero", r, "0.0")}
  %e = tensor.empty() : {a}
  %s = linalg.generic {{indexing_maps = [{all_}, {all_}], iterator_types = ["parallel", "parallel", "parallel"]}}
      ins(%x : {a}) outs(%e : {a}) {{
    ^bb0(%v: f32, %o: f32):
      %t = math.exp %v : f32
      linalg.yield %t : f32
  }} -> {a}
  %q = linalg.generic {{indexing_maps = [{all_}, {kept}], iterator_types = ["parallel", "reduction", "parallel"]}}
      ins(%s : {a}) outs(%zero : {r}) {{
    ^bb0(%v: f32, %o: f32):
      %t = arith.addf %v, %o : f32
      linalg.yield %t : f32
  }} -> {r}
  return %s, %q : {a}, {r}"""
    return Payload(function(f"%x: {a}", f"({a}, {r})", body), O3)


SEVERAL_RESULTS = {
    "sum_and_squares": sum_and_squares(64, 96),
    "sum_and_squares_uneven": sum_and_squares(7, 103),
    "sum_and_squares_of_a_row": sum_and_squares(1, 384),
    "sum_and_norm": sum_and_norm(24, 128),
    "exponentials": exponentials(6, 21, 7),
    "matmul_and_relu": matmul_and_relu(64, 48, 80),
    "matmul_and_relu_uneven": matmul_and_relu(30, 41, 33),
    "channels_first_product": product_of_pixels({"n": 29, "m": 52, "k": 24}, ("km", "nk", "nm"), both=True),
}
