"""Pieces of programs that scripts find by their places: another piece at the same place is refused."""

from __future__ import annotations

import re
import struct
from typing import Any

import pytest
from channels_first_networks import function, layer
from enlarged_images import COUNTED, doubled
from iree.compiler import ir
from permuted_channels import ending
from recurrent_networks import Recurrent, gated_unit

from mlir_sched.errors import ScriptError
from mlir_sched.library.library import build_library
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.channels.permuted_weights import PermutedWeights
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.layout.ordered_reads import OrderedReads
from mlir_sched.program.rewrites.placed.placed_rewrite import PlacedRewrite
from mlir_sched.program.rewrites.recurrent.fused_gates import FusedGates
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.tasks.worker.extraction import apply_to_program
from mlir_sched.transform_scripts.script.form import script_context

IMAGE = "1x16x6x10"


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave what comes before all rewrites out: shuffled channels would be gone."""
    monkeypatch.setattr(pipeline, "FIRST", ())


def private(text: str) -> str:
    """Return a program as it enters IREE's preprocessing phase."""
    return re.sub(r"\breturn\b", "util.return", text.replace("func.func @main", "util.func public @main"))


def read_again(text: str, value: str, kind: str) -> str:
    """Return a program in which a value has another reader."""
    return text.replace("  util.return", f"  %again = util.optimization_barrier {value} : {kind}\n  util.return")


FIRST = layer(0, "conv_2d_nchw_fchw", "%image", ("1x4x8x12", "16x4x3x3", IMAGE), 1)
SECOND = layer(2, "conv_2d_nchw_fchw", "%out0", (IMAGE, "16x16x1x1", IMAGE), 1)
ALL = "affine_map<(n, c, y, x) -> (n, c, y, x)>"
DIFFERENCE = f"""
  %room = tensor.empty() : tensor<{IMAGE}xf32>
  %difference = linalg.generic {{indexing_maps = [{ALL}, {ALL}, {ALL}],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}
      ins(%out0, %out2 : tensor<{IMAGE}xf32>, tensor<{IMAGE}xf32>) outs(%room : tensor<{IMAGE}xf32>) {{
  ^bb0(%x: f32, %y: f32, %o: f32):
    %e = arith.subf %x, %y : f32
    linalg.yield %e : f32
  }} -> tensor<{IMAGE}xf32>"""
JOINS = f"""
  %few = tensor.concat dim(1) %out0, %out2 : (tensor<{IMAGE}xf32>, tensor<{IMAGE}xf32>) -> tensor<1x32x6x10xf32>
  %many = tensor.concat dim(1) %out0, %out2, %out2
    : (tensor<{IMAGE}xf32>, tensor<{IMAGE}xf32>, tensor<{IMAGE}xf32>) -> tensor<1x48x6x10xf32>
  %all = tensor.concat dim(1) %few, %many : (tensor<1x32x6x10xf32>, tensor<1x48x6x10xf32>) -> tensor<1x80x6x10xf32>"""
SPREAD = f"""%bias{{n}} = arith.constant dense<{[*map(float, range(16))]}> : tensor<16xf32>
  %place{{n}} = tensor.empty() : tensor<{IMAGE}xf32>
  %start{{n}} = linalg.broadcast ins(%bias{{n}} : tensor<16xf32>) outs(%place{{n}} : tensor<{IMAGE}xf32>)
    dimensions = [0, 2, 3]
  """


def network(between: str, value: str, shape: str = IMAGE) -> str:
    """Return a network of three convolutions with something in front of the last one."""
    _, channels, rows, columns = shape.split("x")
    result = f"1x8x{rows}x{columns}"
    last = layer(1, "conv_2d_nchw_fchw", value, (shape, f"8x{channels}x1x1", result), 1)
    return private(function("1x4x8x12", FIRST + SECOND + between + last, "%out1", result))


BETWEEN = network(DIFFERENCE, "%difference")
TWICE = "%s = arith.subf %x, %y : f32\n    %e = arith.mulf %s, %two : f32"
SCALED = BETWEEN.replace("%e = arith.subf %x, %y : f32", TWICE)
SCALED = SCALED.replace("  %room =", "  %two = arith.constant 2.0 : f32\n  %room =")
JOINED = network(JOINS, "%all", "1x80x6x10")
BIASED = network("", "%out2")
for n in (0, 2):
    BIASED = BIASED.replace("%zero0 =", SPREAD.format(n=n) + "%zero0 =").replace(f"outs(%init{n}", f"outs(%start{n}")
EXCHANGED = re.sub(r"outs\(%start([02])", lambda start: f"outs(%start{2 - int(start[1])}", BIASED)
ENLARGED = network(doubled("%out2", IMAGE), "%large", "1x16x12x20")
NUMBERS = "\n  %large_c = arith.constant dense<{}> : tensor<16xi64>"
COUNTED_UP, COUNTED_DOWN = (
    ENLARGED.replace(COUNTED.format(name="large_c", size=16), NUMBERS.format([*numbers]))
    for numbers in (range(16), range(15, -1, -1))
)
GATE = private(Recurrent(batch=1, steps=2, gates_apart=True).text())
UNIT = private(gated_unit(rows=1))
SHUFFLED = private(ending("a product"))
READ = """
  %room = tensor.empty() : tensor<5x5xf32>
  %read = linalg.generic {indexing_maps = [affine_map<(y, x) -> (y, x)>], iterator_types = ["parallel", "parallel"]}
      outs(%room : tensor<5x5xf32>) {
  ^bb0(%o: f32):
    %row = linalg.index 0 : index
    %column = linalg.index 1 : index
    %e = tensor.extract %image[%row, %column] : tensor<5x5xf32>
    linalg.yield %e : f32
  } -> tensor<5x5xf32>"""
IN_ORDER = private(function("5x5", READ, "%read", "5x5"))
TABLE = """
  %table = arith.constant dense_resource<table> : tensor<5x5xf32>"""
BYTES = "".join(f"{number:02x}" for number in struct.pack("<25f", *range(25)))
RESOURCES = f"""
{{-# dialect_resources: {{ builtin: {{ table: "0x04000000{BYTES}" }} }} #-}}"""
OF_TABLE = private(function("5x5", TABLE + READ.replace("%image", "%table"), "%read", "5x5")) + RESOURCES
BOTH = READ.replace("%e = tensor.extract %image", "%a = tensor.extract %image").replace(
    "    linalg.yield",
    """    %b = tensor.extract %other[%row, %column] : tensor<5x5xf32>
    %e = arith.subf %a, %b : f32
    linalg.yield""",
)
OTHER = "\n  %other = util.optimization_barrier %image : tensor<5x5xf32>"
OF_TWO = private(function("5x5", OTHER + BOTH, "%read", "5x5"))
MASK = f"""
  %three = arith.constant 3 : index
  %none = arith.constant 0.0 : f32
  %numbers = arith.constant dense<{{}}> : tensor<16xi64>
  %room = tensor.empty() : tensor<{IMAGE}xf32>
  %masked = linalg.generic {{{{indexing_maps = [affine_map<(n, c, y, x) -> (c)>, {ALL}, {ALL}],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}}}}
      ins(%numbers, %out2 : tensor<16xi64>, tensor<{IMAGE}xf32>) outs(%room : tensor<{IMAGE}xf32>) {{{{
  ^bb0(%n: i64, %x: f32, %o: f32):
    %i = arith.index_cast %n : i64 to index
    %few = arith.cmpi slt, %i, %three : index
    %e = arith.select %few, %x, %none : f32
    linalg.yield %e : f32
  }}}} -> tensor<{IMAGE}xf32>"""
MASKED, MASKED_LAST = (network(MASK.format([*numbers]), "%masked") for numbers in (range(16), range(15, -1, -1)))
FACTORS = re.compile(r"ins\((%v\d+), (%v\d+)(?=[^\n]*\n[^\n]*\n *%y = arith\.mulf)")
SIGMOID = re.findall(r"(%v\d+) = linalg.generic", UNIT)[-2]
PLANTED: dict[str, tuple[PlacedRewrite[Any], str, str]] = {
    "the operands of a difference": (ChannelsLast(), BETWEEN, BETWEEN.replace("subf %x, %y", "subf %y, %x")),
    "the operands of a difference with a constant": (
        ChannelsLast(), SCALED, SCALED.replace("subf %x, %y", "subf %y, %x")
    ),
    "the operands of a join": (ChannelsLast(), JOINED, JOINED.replace("%out0, %out2, %out2", "%out2, %out0, %out2")),
    "the starts of sums": (ChannelsLast(), BIASED, EXCHANGED),
    "the readers of a bias": (ChannelsLast(), BIASED, read_again(BIASED, "%start2", f"tensor<{IMAGE}xf32>")),
    "the numbers of channels": (ChannelsLast(), COUNTED_UP, COUNTED_DOWN),
    "the loops that a tensor is read at": (
        OrderedReads(), IN_ORDER, IN_ORDER.replace("[%row, %column]", "[%column, %row]")
    ),
    "the loops that a table is read at": (
        OrderedReads(), OF_TABLE, OF_TABLE.replace("[%row, %column]", "[%column, %row]")
    ),
    "the tensors that a difference reads": (OrderedReads(), OF_TWO, OF_TWO.replace("subf %a, %b", "subf %b, %a")),
    "the numbers of channels of a mask": (ChannelsLast(), MASKED, MASKED_LAST),
    "the operands of a difference in a gate": (
        FusedGates(), GATE, GATE.replace("subf %a, %b", "subf %b, %a")
    ),
    "the values of a gate": (FusedGates(), UNIT, FACTORS.sub(r"ins(\2, \1", UNIT)),
    "the readers of a gate": (FusedGates(), UNIT, read_again(UNIT, SIGMOID, "tensor<1x8xf32>")),
    "the readers of shuffled channels": (
        PermutedWeights(), SHUFFLED, read_again(SHUFFLED, "%shuffled0", "tensor<1x32x16x20xf32>")
    ),
}  # fmt: skip
"""By what is another one: a rewrite, the program that a script is written for, and a program that differs there."""


@pytest.mark.parametrize("name", PLANTED)
def test_a_script_refuses_another_piece(name: str) -> None:
    rewrite, own, other = PLANTED[name]
    assert other != own
    with script_context(), ir.Location.unknown():
        library = build_library([], pipeline.script((rewrite,), StagedProgram(ir.Module.parse(own))))
        apply_to_program(library, ir.Module.parse(own).operation)
        with pytest.raises(ScriptError):
            apply_to_program(library, ir.Module.parse(other).operation)


NEEDLESS = {"the starts of sums", "the readers of a bias"}
"""What no replacement depends on: a script refuses more than it has to."""


@pytest.mark.parametrize("name", [name for name in PLANTED if name not in NEEDLESS])
def test_the_finder_tells_another_piece_apart(name: str) -> None:
    rewrite, own, other = PLANTED[name]
    with script_context(), ir.Location.unknown():
        programs = [WalkedProgram(ir.Module.parse(text)) for text in (own, other)]
        kinds = [[site.kind for site in rewrite.sites(program)] for program in programs]
        assert kinds[0]
        assert kinds[0] != kinds[1]
