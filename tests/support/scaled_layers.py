"""Programs with layers of one shape that differ in the number by which they scale."""

from __future__ import annotations

from collections.abc import Sequence


def scaled_layers(scales: Sequence[float]) -> str:
    """Return a program of products of one shape, one after the other, each scaled by a number of its own."""
    type_, name = "tensor<16x16xf32>", "%x"
    lines = [
        f"func.func @main(%x: {type_}, %w: {type_}) -> {type_} {{",
        "  %zero = arith.constant 0.0 : f32",
        f"  %e = tensor.empty() : {type_}",
        f"  %f = linalg.fill ins(%zero : f32) outs(%e : {type_}) -> {type_}",
    ]
    for number, scale in enumerate(scales):
        lines += [
            f"  %scale{number} = arith.constant {scale} : f32",
            f"  %r{number} = linalg.matmul ins({name}, %w : {type_}, {type_}) outs(%f : {type_}) -> {type_}",
            f"  %q{number} = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, "
            'affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}',
            f"    ins(%r{number} : {type_}) outs(%e : {type_}) {{",
            "  ^bb0(%a: f32, %o: f32):",
            f"    %b = arith.mulf %a, %scale{number} : f32",
            "    linalg.yield %b : f32",
            f"  }} -> {type_}",
        ]
        name = f"%q{number}"
    return "\n".join([*lines, f"  return {name} : {type_}", "}"])
