"""How many bytes of weights the calls of a program read, at the flow phase; no process is started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iree.compiler import ir
from weight_programs import ROW, load, main, parameter, product, stores

from mlir_sched.tasks.worker.constants import weight_bytes
from mlir_sched.transform_scripts.script.form import script_context

BYTES = 4 * 8
"""Bytes of one row."""
WEIGHTS = parameter("weights"), parameter("numbers")
FOLDED = stores("folded", product("weights", "numbers"), "%product")
INLINE = f"util.global private @inline = dense<[1., 2., 3., 4., 5., 6., 7., 8.]> : {ROW}"


@pytest.fixture(autouse=True)
def in_context() -> Iterator[None]:
    with script_context(), ir.Location.unknown():
        yield


def read(*texts: str) -> int:
    return weight_bytes(ir.Module.parse("\n".join(texts)).operation)


def test_what_is_only_read_while_the_program_is_loaded_does_not_count() -> None:
    assert read(*WEIGHTS, main("weights", "numbers")) == 2 * BYTES
    assert read(*WEIGHTS, FOLDED, main("folded")) == BYTES
    assert read(*WEIGHTS, FOLDED, main("folded", "weights")) == 2 * BYTES


def test_weights_in_the_program_count_as_those_in_files_do() -> None:
    assert read(INLINE, main("inline")) == BYTES
    constant = "  %c = arith.constant dense<[1., 2., 3., 4.]> : tensor<4xf32>\n"
    splat = "  %s = arith.constant dense<1.0> : tensor<4096xf32>\n"
    assert read(INLINE, main("inline").replace("{\n", "{\n" + constant + splat)) == BYTES + 4 * 4


def test_views_of_a_constant_count_once() -> None:
    view = f"{load('weights')}  %row = flow.tensor.reshape %weights : {ROW} -> {ROW}"
    again = f"{load('view')}  %again = flow.tensor.reshape %view : {ROW} -> {ROW}"
    views = stores("view", view, "%row"), stores("again", again, "%again")
    assert read(*WEIGHTS, *views, main("weights", "view", "again")) == BYTES
    assert read(*WEIGHTS, *views, main("again")) == BYTES


def test_what_calls_change_is_no_weight() -> None:
    state = f"util.global private mutable @state : {ROW}"
    function = main("weights").replace("  util.return", f"  util.global.store %weights, @state : {ROW}\n  util.return")
    assert read(state, WEIGHTS[0], function, main("state").replace("@main", "@other")) == BYTES
