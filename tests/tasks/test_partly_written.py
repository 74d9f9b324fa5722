"""IREE itself may store a part of a tensor; the cause is named, with what avoids that."""

from __future__ import annotations

from pathlib import Path

import iree_cases as cases
import pytest
from rewriting import write

from mlir_sched.tasks import extract
from mlir_sched.tasks.partly_written import why_unwritten

pytestmark = pytest.mark.promise

STRIDED = """
#all = affine_map<(i, j) -> (i, j)>
#third = affine_map<(i, j) -> (i, j * 3)>
func.func @main(%x: tensor<4x12xi32>) -> (tensor<4x12xi32>, tensor<4x4xi32>) {
  %c7 = arith.constant 7 : i32
  %e = tensor.empty() : tensor<4x12xi32>
  %y = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel"]}
    ins(%x : tensor<4x12xi32>) outs(%e : tensor<4x12xi32>) {
  ^bb0(%a: i32, %o: i32):
    %s = arith.xori %a, %c7 : i32
    linalg.yield %s : i32
  } -> tensor<4x12xi32>
  %f = tensor.empty() : tensor<4x4xi32>
  %c = linalg.generic {indexing_maps = [#third, #all], iterator_types = ["parallel", "parallel"]}
    ins(%y : tensor<4x12xi32>) outs(%f : tensor<4x4xi32>) {
  ^bb0(%a: i32, %o: i32):
    %s = arith.addi %a, %c7 : i32
    linalg.yield %s : i32
  } -> tensor<4x4xi32>
  return %y, %c : tensor<4x12xi32>, tensor<4x4xi32>
}
"""
"""A value that is returned, and read by another op at every third column."""
FLOATS = (
    STRIDED.replace("xori", "addf").replace("addi", "mulf").replace("constant 7", "constant 7.0").replace("i32", "f32")
)
BARRIER = STRIDED.replace("%f =", "%b = util.optimization_barrier %y : tensor<4x12xi32>\n  %f =").replace(
    "ins(%y", "ins(%b"
)


@pytest.mark.parametrize("text", [STRIDED, FLOATS], ids=["integers", "floats"])
def test_a_tensor_that_a_joined_op_writes_in_part_is_the_cause(text: str, tmp_path: Path) -> None:
    why = why_unwritten(extract(write(tmp_path, text), cases.TARGET).tasks)
    assert "writes 16 of 48 elements" in why
    assert "IREE joins the op" in why
    assert "util.optimization_barrier" in why


@pytest.mark.parametrize("text", [BARRIER, cases.MATMUL, cases.ACCUMULATE], ids=["barrier", "product", "in place"])
def test_what_is_written_whole_or_in_place_is_no_cause(text: str, tmp_path: Path) -> None:
    assert why_unwritten(extract(write(tmp_path, text), cases.TARGET).tasks) == ""
