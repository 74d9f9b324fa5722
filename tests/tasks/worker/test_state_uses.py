"""The state of programs: which public functions read it, which change it, and which are left out for that."""

from __future__ import annotations

from pathlib import Path

import iree_cases as cases
import pytest

pytestmark = pytest.mark.promise

CACHE = """
module @memory {
  util.global private mutable @rows = dense<0.0> : tensor<64x64xf32>
  util.global private mutable @weights = dense<2.0> : tensor<64x64xf32>
  func.func private @keep(%x: tensor<64x64xf32>) {
    util.global.store %x, @rows : tensor<64x64xf32>
    return
  }
  func.func @append(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %rows = util.global.load @rows : tensor<64x64xf32>
    %new = arith.addf %x, %rows : tensor<64x64xf32>
    func.call @keep(%new) : (tensor<64x64xf32>) -> ()
    return %new : tensor<64x64xf32>
  }
  func.func @attend(%q: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %rows = util.global.load @rows : tensor<64x64xf32>
    %r = arith.mulf %q, %rows : tensor<64x64xf32>
    return %r : tensor<64x64xf32>
  }
  func.func @scale(%q: tensor<64x64xf32>) -> tensor<64x64xf32> {
    %weights = util.global.load @weights : tensor<64x64xf32>
    %r = arith.mulf %q, %weights : tensor<64x64xf32>
    return %r : tensor<64x64xf32>
  }
}
"""
ALONE = CACHE[: CACHE.index("  func.func @attend")] + "}"


def test_functions_that_change_state_are_left_out_and_those_that_read_it_are_known(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, CACHE)
    assert {entry.name: (entry.reads, entry.writes) for entry in model.entries} == {
        "attend": (("rows",), ()),
        "scale": ((), ()),
    }, "what no function changes is no state"
    assert [entry.name for entry in model.stateful] == ["append", "attend"]
    assert model.not_run == {
        "append": "it changes the program's state (@rows), so that no two calls of it are alike"
    }, "a store in a function that it calls counts"


def test_a_program_that_changes_its_state_in_all_functions_keeps_them(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, ALONE)
    assert [(entry.name, entry.writes) for entry in model.entries] == [("append", ("rows",))]
    assert model.not_run == {}
