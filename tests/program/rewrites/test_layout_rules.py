"""Rules of layouts: between two convolutions, every kind of op is computed channels last, and no transpose stays."""

from __future__ import annotations

import re

import pytest
from channels_first_networks import function, layer, padded
from iree.compiler import ir
from shuffled_channels import SHUFFLE, half

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.library.library import build_library
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.program.rewrites.pipeline import rewritten, script, sites
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.tasks.worker.extraction import apply_to_program
from mlir_sched.transform_scripts.script.form import script_context

IMAGE = "1x16x6x10"
ALL, CHANNEL, ROW = "(n, c, y, x) -> (n, c, y, x)", "(n, c, y, x) -> (c)", "(n, c, y, x) -> (n, c, 0, 0)"


def generic(name: str, maps: str, values: str, types: str, result: str, body: str, kinds: str = "pppp") -> str:
    """Return an op whose body gets its values as ``%x``, ``%y`` and what was there as ``%o``."""
    *places, last = (f"affine_map<{each}>" for each in maps.split("; "))
    count, loops = len(places), ", ".join({"p": '"parallel"', "r": '"reduction"'}[kind] for kind in kinds)
    arguments = ", ".join([f"%{value}: f32" for value in "xy"[:count]] + ["%o: f32"])
    return f"""
  %{name}_empty = tensor.empty() : tensor<{result}xf32>
  %{name}_zero = arith.constant 0.0 : f32
  %{name}_start = linalg.fill ins(%{name}_zero : f32) outs(%{name}_empty : tensor<{result}xf32>) -> tensor<{result}xf32>
  %{name} = linalg.generic {{indexing_maps = [{", ".join([*places, last])}], iterator_types = [{loops}]}}
      ins({values} : {types}) outs(%{name}_start : tensor<{result}xf32>) {{
  ^bb0({arguments}):
    {body}
    linalg.yield %e : f32
  }} -> tensor<{result}xf32>"""


def reduced(name: str, value: str, body: str) -> str:
    return generic(name, f"{ALL}; {ROW}", value, f"tensor<{IMAGE}xf32>", "1x16x1x1", body, "pprr")


TWICE = "tensor<1x16x1x1xf32>, tensor<1x16x1x1xf32>"
SQUARES = "%s = arith.mulf %x, %x : f32\n %e = arith.addf %s, %o : f32"
BETWEEN = {
    "element-wise": (
        generic("v", f"{ALL}; {ALL}", "%out0", f"tensor<{IMAGE}xf32>", IMAGE, "%e = arith.maximumf %x, %v_zero : f32"),
        IMAGE,
    ),
    "broadcast": (
        f"\n  %vector = arith.constant dense<{[float(n) for n in range(16)]}> : tensor<16xf32>"
        + generic(
            "v",
            f"{ALL}; {CHANNEL}; {ALL}",
            "%out0, %vector",
            f"tensor<{IMAGE}xf32>, tensor<16xf32>",
            IMAGE,
            "%e = arith.addf %x, %y : f32",
        ),
        IMAGE,
    ),
    "reduction": (reduced("v", "%out0", "%e = arith.addf %x, %o : f32"), "1x16x1x1"),
    "two reductions of one form": (
        reduced("sums", "%out0", "%e = arith.addf %x, %o : f32")
        + reduced("squares", "%out0", SQUARES)
        + generic("v", f"{ALL}; {ALL}; {ALL}", "%sums, %squares", TWICE, "1x16x1x1", "%e = arith.addf %x, %y : f32"),
        "1x16x1x1",
    ),
    "padding": ("\n  " + padded("%out0", IMAGE, "1x16x8x12", 9).replace("%pad9", "%v"), "1x16x8x12"),
    "pooling": (
        layer(9, "pooling_nchw_max", "%out0", (IMAGE, "3x3", "1x16x4x8"), 1).replace("%out9", "%v"),
        "1x16x4x8",
    ),
    "slice": (half("v", "%out0", 4), "1x8x6x10"),
    "shuffle": (
        half("a", "%out0", 0)
        + half("b", "%out0", 8)
        + SHUFFLE.format(n="", halves="%a, %b").replace("%shuffled", "%v"),
        IMAGE,
    ),
}
"""By kind of op: the ops that make ``%v`` of ``%out0``, and the shape of ``%v``."""


def network(name: str) -> str:
    between, shape = BETWEEN[name]
    _, channels, *pixels = shape.split("x")
    result = "x".join(["1", "8", *pixels])
    first = layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x8x12", "16x4x3x3", IMAGE), 1)
    last = layer(1, "conv_2d_nchw_fchw", "%v", (shape, f"8x{channels}x1x1", result), 1)
    text = function("1x4x8x12", first + between + last, "%out1", result)
    return re.sub(r"\breturn\b", "util.return", text.replace("func.func @main", "util.func public @main"))


def turned(program: ir.Module) -> list[str]:
    """Return the results of the transposes of images that run in every call; shuffled channels have five dims."""
    ops = [op for op in walk(program.operation) if op.name == "linalg.transpose"]
    made = [(op, producer(op.operands[0])) for op in ops]
    vary = (op.result.type for op, source in made if source is None or source.name != "arith.constant")
    return [str(kind) for kind in vary if kind.rank == 4]


@pytest.mark.parametrize("name", BETWEEN)
def test_only_image_and_result_are_transposed(name: str) -> None:
    with script_context(), ir.Location.unknown():
        program = rewritten((ChannelsLast(),), StagedProgram(ir.Module.parse(network(name)))).module
        assert "nchw" not in str(program)
        assert len(turned(program)) == 2


@pytest.mark.parametrize("name", BETWEEN)
def test_kinds_that_stay_are_told_from_those_that_a_matcher_takes_them_for(name: str) -> None:
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(network(name)))
        for site in sites((ChannelsLast(),), program):
            made = script((ChannelsLast(),), program, kept={site.rewrite: (site.label,)})
            result = program.module.operation.clone()
            apply_to_program(build_library([], made), result)
            assert result.verify()


def test_every_op_with_a_rule_is_between_two_convolutions() -> None:
    text = "".join(network(name) for name in BETWEEN)
    rare = {"linalg.conv_1d_ncw_fcw", "linalg.depthwise_conv_1d_ncw_cw", "linalg.depthwise_conv_2d_nchw_chw"}
    others = {*rare, "linalg.conv_2d_ngchw_gfchw", "linalg.pooling_nchw_sum"}
    assert {name for name in RULES if f" {name} " not in text} <= others, "in the tests of networks"
