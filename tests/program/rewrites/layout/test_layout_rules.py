"""Rules of layouts: between two convolutions, every kind of op is computed channels last, and no transpose stays."""

from __future__ import annotations

import re

import pytest
from channels_first_networks import function, layer, padded
from iree.compiler import ir
from shuffled_channels import SHUFFLE, half

from mlir_sched.compiler.operations import producer, walk
from mlir_sched.errors import ScriptError
from mlir_sched.library.library import build_library
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.constant_values import scalar_constant
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.layout.rules import RULES
from mlir_sched.program.rewrites.pipeline import rewritten, script, sites
from mlir_sched.program.rewrites.placed.comparison import form_of
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.tasks.worker.extraction import apply_to_program
from mlir_sched.transform_scripts.script.form import script_context

IMAGE = "1x16x6x10"
ALL, CHANNEL, ROW = "(n, c, y, x) -> (n, c, y, x)", "(n, c, y, x) -> (c)", "(n, c, y, x) -> (n, c, 0, 0)"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what comes before all rewrites out: shuffled channels would be gone."""
    monkeypatch.setattr(pipeline, "FIRST", ())


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


def joined(name: str, parts: int) -> str:
    types = ", ".join(["tensor<1x8x6x10xf32>"] * parts)
    values = ", ".join(["%a", "%b", "%a"][:parts])
    return f"\n  %{name} = tensor.concat dim(1) {values} : ({types}) -> tensor<1x{8 * parts}x6x10xf32>"


HALVES = half("a", "%out0", 0) + half("b", "%out0", 8)
BOTH = """
  %v = tensor.concat dim(1) %short, %long : (tensor<1x16x6x10xf32>, tensor<1x24x6x10xf32>) -> tensor<1x40x6x10xf32>"""
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
    "joins that begin alike": (HALVES + joined("short", 2) + joined("long", 3) + BOTH, "1x40x6x10"),
    "a longer join in front": (HALVES + joined("long", 3) + joined("short", 2) + BOTH, "1x40x6x10"),
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


def dense(layers: int) -> str:
    """Return a network whose layers read what all layers before them made."""
    body, made = layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x8x12", "16x4x3x3", IMAGE), 1), ["%out0"]
    for n in range(1, layers + 1):
        types = ", ".join([f"tensor<{IMAGE}xf32>"] * n)
        shape = f"1x{16 * n}x6x10"
        body += f"\n  %all{n} = tensor.concat dim(1) {', '.join(made)} : ({types}) -> tensor<{shape}xf32>"
        body += layer(n, "conv_2d_nchw_fchw", f"%all{n}", (shape, f"16x{16 * n}x1x1", IMAGE), 1)
        made.append(f"%out{n}")
    text = function("1x4x8x12", body, made[-1], IMAGE)
    return re.sub(r"\breturn\b", "util.return", text.replace("func.func @main", "util.func public @main"))


def script_of(text: str) -> str:
    with script_context(), ir.Location.unknown():
        return script((ChannelsLast(),), StagedProgram(ir.Module.parse(text))).text


def test_ops_that_differ_in_sizes_alone_have_one_function() -> None:
    short, long = (script_of(dense(layers)) for layers in (3, 6))
    for found in (short, long):
        assert found.count("linalg.conv_2d_nhwc_hwcf") == 2, "with three taps, and with one"
        assert found.count("transform.foreach") == 6, "over convolutions, joins, and joins that read another one"


def test_a_join_reads_the_join_of_its_first_values() -> None:
    joins = re.findall(r"tensor\.concat dim\(3\) (.*?) :", script_of(dense(6)))
    assert [join.count("%") for join in joins] == [2, 2, 2, 2, 2]


def test_a_script_does_not_apply_to_a_network_with_joins_of_other_sizes() -> None:
    with script_context(), ir.Location.unknown():
        made = script((ChannelsLast(),), StagedProgram(ir.Module.parse(dense(3))))
        other = ir.Module.parse(dense(3).replace("6x10", "10x6").replace("8x12", "12x8"))
        with pytest.raises(ScriptError):
            apply_to_program(build_library([], made), other.operation)


@pytest.mark.parametrize("number", ["0.0", "1.0"])
def test_sums_start_with_the_number_that_they_start_with_in_the_model(number: str) -> None:
    with script_context(), ir.Location.unknown():
        made = script((ChannelsLast(),), StagedProgram(ir.Module.parse(dense(3))))
        text = dense(3).replace("%zero3 = arith.constant 0.0", f"%zero3 = arith.constant {number}")
        program = ir.Module.parse(text).operation
        apply_to_program(build_library([], made), program)
        sums = [op for op in walk(program) if op.name == "linalg.conv_2d_nhwc_hwcf"]
        starts = [producer(op.operands[2]) for op in sums]
        assert [scalar_constant(start.operands[0]) for start in starts] == [0.0, 0.0, 0.0, float(number)]


READS = """
  %{name} = linalg.generic {{indexing_maps = [affine_map<(d) -> (d)>], iterator_types = ["parallel"]}}
      outs(%o : tensor<4xf32>) {{
  ^bb0(%x: f32):
    %i = linalg.index 0 : index
    %first = tensor.extract {first}[%i] : tensor<4xf32>
    %second = tensor.extract {second}[%i] : tensor<4xf32>
    %sum = arith.addf %first, %second : f32
    linalg.yield %sum : f32
  }} -> tensor<4xf32>"""


def test_bodies_that_read_one_tensor_twice_have_another_form_than_those_that_read_two() -> None:
    body = "".join(READS.format(name=name, first="%a", second=f"%{name}_b") for name in ("u", "v"))
    text = f"""func.func @f(%a: tensor<4xf32>, %b: tensor<4xf32>, %o: tensor<4xf32>) {{
{body.replace("%u_b", "%a").replace("%v_b", "%b")}
  return
}}"""
    with script_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        twice, two = (op for op in walk(module.operation) if op.name == "linalg.generic")
        assert form_of(twice) != form_of(two)


def test_sums_that_start_with_a_value_still_do() -> None:
    text = dense(3)
    assert "outs(%init3" in text
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(text.replace("outs(%init3", "outs(%out1")))
        ops = walk(rewritten((ChannelsLast(),), program).module.operation)
        *_, last = (op for op in ops if op.name == "linalg.conv_2d_nhwc_hwcf")
        assert producer(last.operands[2]).name == "linalg.conv_2d_nhwc_hwcf"


BRANCH = """%large = arith.cmpf ogt, %x, %v_zero : f32
    %e = scf.if %large -> f32 {
      scf.yield %x : f32
    } else {
      scf.yield %v_zero : f32
    }"""


@pytest.mark.parametrize(("body", "fit"), [("%e = arith.maximumf %x, %v_zero : f32", True), (BRANCH, False)])
def test_a_body_with_branches_is_not_written_again(body: str, fit: bool) -> None:
    between = generic("v", f"{ALL}; {ALL}", "%out0", f"tensor<{IMAGE}xf32>", IMAGE, body)
    with script_context(), ir.Location.unknown():
        module = ir.Module.parse(f"func.func @f(%out0: tensor<{IMAGE}xf32>) {{{between}\n  return\n}}")
        (op,) = (op for op in walk(module.operation) if op.name == "linalg.generic")
        assert RULES[op.name].fits(op) == fit


def test_every_op_with_a_rule_is_between_two_convolutions() -> None:
    text = "".join(network(name) for name in BETWEEN)
    rare = {"linalg.conv_1d_ncw_fcw", "linalg.depthwise_conv_1d_ncw_cw", "linalg.depthwise_conv_2d_nchw_chw"}
    others = {*rare, "linalg.conv_2d_ngchw_gfchw", "linalg.pooling_nchw_sum"}
    assert {name for name in RULES if f" {name} " not in text} <= others, "in the tests of networks"
