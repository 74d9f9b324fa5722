"""Programs with attention as IREE has it after import, and what they compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from channels_first_networks import function
from channels_first_networks import layer as convolution

BETWEEN_PIXELS = """
  %pixels = tensor.collapse_shape %out1 [[0, 1], [2, 3]] : tensor<1x64x8x8xf32> into tensor<64x64xf32>
  %scale = arith.constant 0.001 : f32
  %none = tensor.empty() : tensor<64x64xf32>
  %attention = iree_linalg_ext.attention <indexing_maps = [
    affine_map<(m, n, k, d) -> (d, m)>, affine_map<(m, n, k, d) -> (d, k)>, affine_map<(m, n, k, d) -> (n, k)>,
    affine_map<(m, n, k, d) -> ()>, affine_map<(m, n, k, d) -> (n, m)>]>
    ins(%pixels, %pixels, %pixels, %scale : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, f32)
    outs(%none : tensor<64x64xf32>) {
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  } -> tensor<64x64xf32>
  %result = tensor.expand_shape %attention [[0, 1], [2, 3]] output_shape [1, 64, 8, 8]
    : tensor<64x64xf32> into tensor<1x64x8x8xf32>"""
LOOPS = "bhmnkd"
"""Loops of an attention in the cases: batch and heads, queries, features of values, keys, features of queries."""
SIZES = dict(zip(LOOPS, (2, 3, 5, 6, 7, 4), strict=True))


@dataclass(frozen=True)
class Attention:
    """An attention of :data:`SIZES` by the loops that walk its operands, a letter each.

    Attributes:
        queries, keys, values, result: Loops of the operands, in the order of their dims.
        mask: Loops of the mask; empty for none.
        mask_type: Its element type.
        body: What becomes of a score: ops that make ``%t`` from ``%s``; empty for nothing.
        element: Element type of all tensors but the mask.
    """

    queries: str = "hmd"
    keys: str = "hkd"
    values: str = "hkn"
    result: str = "hmn"
    mask: str = ""
    mask_type: str = "f32"
    body: str = ""
    element: str = "f32"

    def text(self, name: str = "main", sizes: dict[str, int] | None = None) -> str:
        """Return the program: its arguments are queries, keys, values, the scale, and the mask if there is any."""
        used = [loop for loop in LOOPS if loop in self.queries + self.keys + self.values]
        operands = [self.queries, self.keys, self.values, "", *([self.mask] if self.mask else []), self.result]
        maps = ", ".join(f"affine_map<({', '.join(used)}) -> ({', '.join(dims)})>" for dims in operands)
        q, k, v, r = (
            self._tensor(dims, self.element, sizes) for dims in (self.queries, self.keys, self.values, self.result)
        )
        m = self._tensor(self.mask, self.mask_type, sizes)
        arguments = f"%q: {q}, %k: {k}, %v: {v}, %scale: {self.element}" + (f", %mask: {m}" if self.mask else "")
        ins = "%q, %k, %v, %scale" + (", %mask" if self.mask else "")
        types = ", ".join([q, k, v, self.element, *([m] if self.mask else [])])
        yielded = "%t" if self.body else "%s"
        return f"""
func.func @{name}({arguments}) -> {r} {{
  %empty = tensor.empty() : {r}
  %result = iree_linalg_ext.attention <indexing_maps = [{maps}]> ins({ins} : {types}) outs(%empty : {r}) {{
  ^bb0(%s: {self.element}):
    {self.body}
    iree_linalg_ext.yield {yielded} : {self.element}
  }} -> {r}
  return %result : {r}
}}
"""

    def inputs(self) -> list[np.ndarray | float]:
        """Return random inputs; the scale is 0.375, and the first key counts under every mask."""
        rng = np.random.default_rng(0)
        shapes = [[SIZES[loop] for loop in dims] for dims in (self.queries, self.keys, self.values)]
        found: list[np.ndarray | float] = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        found.append(0.375)
        if self.mask:
            shape = [SIZES[loop] for loop in self.mask]
            mask = rng.standard_normal(shape).astype(np.float32)
            counts = mask > 0
            counts[..., 0] = True
            found.append(counts if self.mask_type == "i1" else mask)
        return found

    def expected(self, inputs: Sequence[np.ndarray | float]) -> np.ndarray:
        """Return the result in double precision."""
        queries, keys, values, scale, *mask = (np.asarray(value, np.float64) for value in inputs)
        rows = "".join(loop for loop in self.result if loop in self.queries)
        scores = np.einsum(f"{self.queries},{self.keys}->{rows}k", queries, keys) * scale
        if self.body:
            scores = np.tanh(scores)
        if mask:
            (added,) = mask
            if self.mask_type == "i1":
                added = np.where(added > 0, 0.0, -np.inf)
            scores += np.einsum(f"{rows}k,{self.mask}->{rows}k", np.ones_like(scores), added)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        result: np.ndarray = np.einsum(f"{rows}k,{self.values}->{self.result}", weights, values)
        return result

    def _tensor(self, dims: str, element: str, sizes: dict[str, int] | None) -> str:
        shape = "".join(f"{'?' if (size := (sizes or SIZES)[loop]) < 0 else size}x" for loop in dims)
        return f"tensor<{shape}{element}>"


def with_constant_scale(text: str) -> str:
    """Return a program of :meth:`Attention.text` whose scale is a number of its own."""
    constant = "%scale = arith.constant 0.25 : f32"
    return text.replace(", %scale: f32", "").replace("%empty = ", f"{constant}\n  %empty = ", 1)


TANH = "%t = math.tanh %s : f32"
PLAIN = Attention()


def causal(tokens: int, features: int) -> str:
    """Return PyTorch's ``scaled_dot_product_attention(q, k, v, is_causal=True)`` of two heads."""
    return f"""
!q = !torch.vtensor<[1,2,{tokens},{features}],f32>
func.func @main(%q: !q, %k: !q, %v: !q) -> !q {{
  %none = torch.constant.none
  %zero = torch.constant.float 0.0
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %r = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, %zero, %true, %none, %false
    : !q, !q, !q, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !q
  return %r : !q
}}
"""


IN_ONE_DISPATCH = """
!q = tensor<HEADSxQUERIESxFEATURESxf32>
!keys = tensor<HEADSxFEATURESxKEYSxf32>
!values = tensor<HEADSxKEYSxFEATURESxf32>
!s = tensor<HEADSxQUERIESxKEYSxf32>
!row = tensor<HEADSxQUERIESxf32>
#row = affine_map<(h, m, k) -> (h, m)>
#all = affine_map<(h, m, k) -> (h, m, k)>
#mk = affine_map<(h, m, n, k) -> (h, m, k)>
#kn = affine_map<(h, m, n, k) -> (h, k, n)>
#mn = affine_map<(h, m, n, k) -> (h, m, n)>
func.func @main(%q: !q, %k: !keys, %v: !values) -> !q {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %made = flow.dispatch.region -> (!q) {
    %es = tensor.empty() : !s
    %er = tensor.empty() : !row
    %eq = tensor.empty() : !q
    %zs = linalg.fill ins(%zero : f32) outs(%es : !s) -> !s
    %zm = linalg.fill ins(%lowest : f32) outs(%er : !row) -> !row
    %zr = linalg.fill ins(%zero : f32) outs(%er : !row) -> !row
    %zq = linalg.fill ins(%zero : f32) outs(%eq : !q) -> !q
    %products = linalg.generic {indexing_maps = [#mk, #kn, #mn],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : !q, !keys) outs(%zs : !s) {
    ^bb0(%x: f32, %y: f32, %sum: f32):
      %p = arith.mulf %x, %y : f32
      %r = arith.addf %sum, %p : f32
      linalg.yield %r : f32
    } -> !s
    %scores = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%products : !s) outs(%es : !s) {
    ^bb0(%x: f32, %out: f32):
      %r = arith.mulf %x, %scale : f32
      linalg.yield %r : f32
    } -> !s
    %largest = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%scores : !s) outs(%zm : !row) {
    ^bb0(%x: f32, %out: f32):
      %r = arith.maxnumf %x, %out : f32
      linalg.yield %r : f32
    } -> !row
    %weights, %sums = linalg.generic {indexing_maps = [#row, #all, #row],
      iterator_types = ["parallel", "parallel", "reduction"]} ins(%largest : !row) outs(%scores, %zr : !s, !row) {
    ^bb0(%most: f32, %x: f32, %sum: f32):
      %less = arith.subf %x, %most : f32
      %e = math.exp %less : f32
      %r = arith.addf %sum, %e : f32
      linalg.yield %e, %r : f32, f32
    } -> (!s, !row)
    %summed = linalg.generic {indexing_maps = [#mk, #kn, #mn],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%weights, %v : !s, !values) outs(%zq : !q) {
    ^bb0(%x: f32, %y: f32, %sum: f32):
      %p = arith.mulf %x, %y : f32
      %r = arith.addf %sum, %p : f32
      linalg.yield %r : f32
    } -> !q
    %result = linalg.generic {indexing_maps = [#all, #row, #all],
      iterator_types = ["parallel", "parallel", "parallel"]} ins(%summed, %sums : !q, !row) outs(%eq : !q) {
    ^bb0(%x: f32, %sum: f32, %out: f32):
      %r = arith.divf %x, %sum : f32
      linalg.yield %r : f32
    } -> !q
    flow.return %result : !q
  }
  return %made : !q
}
"""


def in_one_dispatch(heads: int, queries: int, keys: int, features: int) -> str:
    """Return an attention as one dispatch, with transposed keys, as the rewrite makes it."""
    sizes = {"HEADS": heads, "QUERIES": queries, "KEYS": keys, "FEATURES": features}
    text = IN_ONE_DISPATCH
    for name, size in sizes.items():
        text = text.replace(name, str(size))
    return text


LAYER = """
!x = !torch.vtensor<[1,32,32],f32>
!wide = !torch.vtensor<[1,32,96],f32>
!twice = !torch.vtensor<[1,32,64],f32>
!rows = !torch.vtensor<[1,32,2,16],f32>
!heads = !torch.vtensor<[1,2,32,16],f32>
!v = !torch.vtensor<[32],f32>
func.func @main(%tokens: !torch.vtensor<[1,32],si64>) -> !x {
LITERALS
  %none = torch.constant.none
  %zero = torch.constant.float 0.0
  %eps = torch.constant.float 1.0e-05
  %true = torch.constant.bool true
  %false = torch.constant.bool false
  %exact = torch.constant.str "none"
  %i-1 = torch.constant.int -1
  %i0 = torch.constant.int 0
  %i1 = torch.constant.int 1
  %i2 = torch.constant.int 2
  %i16 = torch.constant.int 16
  %i32 = torch.constant.int 32
  %i64 = torch.constant.int 64
  %i96 = torch.constant.int 96
  %embedded = torch.aten.embedding %table, %tokens, %i-1, %false, %false
    : !torch.vtensor<[7,32],f32>, !torch.vtensor<[1,32],si64>, !torch.int, !torch.bool, !torch.bool -> !x
  %normed = torch.prim.ListConstruct %i32 : (!torch.int) -> !torch.list<int>
  %before = torch.aten.layer_norm %embedded, %normed, %ones, %ones, %eps, %false
    : !x, !torch.list<int>, !v, !v, !torch.float, !torch.bool -> !x
  %all = torch.aten.linear %before, %in, %wide : !x, !torch.vtensor<[96,32],f32>, !torch.vtensor<[96],f32> -> !wide
  %qf = torch.aten.slice.Tensor %all, %i2, %i0, %i32, %i1 : !wide, !torch.int, !torch.int, !torch.int, !torch.int -> !x
  %kf = torch.aten.slice.Tensor %all, %i2, %i32, %i64, %i1 : !wide, !torch.int, !torch.int, !torch.int, !torch.int -> !x
  %vf = torch.aten.slice.Tensor %all, %i2, %i64, %i96, %i1 : !wide, !torch.int, !torch.int, !torch.int, !torch.int -> !x
  %shape = torch.prim.ListConstruct %i1, %i32, %i2, %i16
    : (!torch.int, !torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %qr = torch.aten.view %qf, %shape : !x, !torch.list<int> -> !rows
  %kr = torch.aten.view %kf, %shape : !x, !torch.list<int> -> !rows
  %vr = torch.aten.view %vf, %shape : !x, !torch.list<int> -> !rows
  %q = torch.aten.transpose.int %qr, %i1, %i2 : !rows, !torch.int, !torch.int -> !heads
  %k = torch.aten.transpose.int %kr, %i1, %i2 : !rows, !torch.int, !torch.int -> !heads
  %v = torch.aten.transpose.int %vr, %i1, %i2 : !rows, !torch.int, !torch.int -> !heads
  %attended = torch.aten.scaled_dot_product_attention %q, %k, %v, %none, %zero, %true, %none, %false
    : !heads, !heads, !heads, !torch.none, !torch.float, !torch.bool, !torch.none, !torch.bool -> !heads
  %ar = torch.aten.transpose.int %attended, %i1, %i2 : !heads, !torch.int, !torch.int -> !rows
  %flat = torch.prim.ListConstruct %i1, %i32, %i32 : (!torch.int, !torch.int, !torch.int) -> !torch.list<int>
  %a = torch.aten.view %ar, %flat : !rows, !torch.list<int> -> !x
  %projected = torch.aten.linear %a, %out, %ones : !x, !torch.vtensor<[32,32],f32>, !v -> !x
  %sum = torch.aten.add.Tensor %embedded, %projected, %i1 : !x, !x, !torch.int -> !x
  %between = torch.aten.layer_norm %sum, %normed, %ones, %ones, %eps, %false
    : !x, !torch.list<int>, !v, !v, !torch.float, !torch.bool -> !x
  %h = torch.aten.linear %between, %up, %twice : !x, !torch.vtensor<[64,32],f32>, !torch.vtensor<[64],f32> -> !twice
  %g = torch.aten.gelu %h, %exact : !twice, !torch.str -> !twice
  %d = torch.aten.linear %g, %down, %ones : !twice, !torch.vtensor<[32,64],f32>, !v -> !x
  %result = torch.aten.add.Tensor %sum, %d, %i1 : !x, !x, !torch.int -> !x
  return %result : !x
}

{-#
  dialect_resources: {
    builtin: {
RESOURCES
    }
  }
#-}
"""


WIDTH = 32
"""Features of a token in the layer."""


def network_with_attention() -> str:
    """Return two products of an image's channels, the second packable, and attention between all pixels."""
    layers = [
        convolution(0, "conv_2d_nchw_fchw", "%image", ("1x8x8x8", "32x8x1x1", "1x32x8x8"), 1),
        convolution(1, "conv_2d_nchw_fchw", "%out0", ("1x32x8x8", "64x32x1x1", "1x64x8x8"), 1),
    ]
    return function("1x8x8x8", "".join(layers) + BETWEEN_PIXELS, "%result", "1x64x8x8")


def layer() -> str:
    """Return a transformer layer as exporters write it, causal, in torch ops; its argument are 32 tokens below 7."""
    rng = np.random.default_rng(0)
    shapes = {"table": (7, WIDTH), "ones": (WIDTH,), "in": (3 * WIDTH, WIDTH), "out": (WIDTH, WIDTH)}
    shapes |= {"up": (2 * WIDTH, WIDTH), "down": (WIDTH, 2 * WIDTH), "wide": (3 * WIDTH,), "twice": (2 * WIDTH,)}
    literals, resources = [], []
    for name, shape in shapes.items():
        sizes, values = "x".join(map(str, shape)), (0.3 * rng.standard_normal(shape)).astype(np.float32)
        kind = f"!torch.vtensor<[{','.join(map(str, shape))}],f32>"
        literals.append(f"  %{name} = torch.vtensor.literal(dense_resource<{name}> : tensor<{sizes}xf32>) : {kind}")
        resources.append(f'      {name}: "0x04000000{values.tobytes().hex().upper()}"')
    return LAYER.replace("LITERALS", "\n".join(literals)).replace("RESOURCES", ",\n".join(resources))
