"""Which parts of a program go into the encoder of its weights, and what is left; no process is started."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from iree.compiler import ir
from weight_programs import ROW, load, main, parameter, product, stores

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.program.encoding import SplitProgram
from mlir_sched.program.worker.encoder import split
from mlir_sched.transform_scripts.script.form import script_context


@pytest.fixture(autouse=True)
def in_context() -> Iterator[None]:
    with script_context(), ir.Location.unknown():
        yield


WEIGHTS = (parameter("weights"), parameter("numbers"))
CHAIN = (*WEIGHTS, stores("squared", product("numbers", "numbers"), "%product"),
         stores("folded", product("weights", "squared"), "%product"))  # fmt: skip


def parts(*texts: str) -> tuple[str, str, SplitProgram]:
    return split("\n".join(texts))


def keys(found: SplitProgram) -> list[str]:
    return [name.key for name in found.kept]


def test_an_encoder_computes_what_calls_read_and_nothing_else_is_left_in_the_program() -> None:
    program, encoder, found = parts(*CHAIN, main("folded"))
    (tensor,) = found.encoded
    assert (tensor.spec, tensor.name.scope, found.kept) == (TensorSpec((8,), "f32"), "model", ())
    assert "arith.mulf" not in program
    assert "layer." not in program
    assert f'#flow.parameter.named<"model"::"{tensor.name.key}"> : {ROW}' in program
    assert encoder.count("arith.mulf") == 2
    assert "@main" not in encoder
    assert encoder.count("util.func public") == 1


def test_parameters_that_calls_read_too_stay() -> None:
    _, _, found = parts(*CHAIN, main("folded", "numbers"))
    assert (len(found.encoded), keys(found)) == (1, ["layer.numbers"])


def test_what_is_read_by_calls_and_by_the_encoder_is_computed_once() -> None:
    program, encoder, found = parts(*CHAIN, main("folded", "squared"))
    assert len(found.encoded) == 2
    assert "arith.mulf" not in program
    assert encoder.count("arith.mulf") == 2


def test_views_of_parameters_and_what_needs_no_parameter_stay_in_the_program() -> None:
    constant = f"util.global private @two = dense<2.0> : {ROW}"
    view = f"{load('weights')}  %view = flow.tensor.reshape %weights : {ROW} -> tensor<2x4xf32>"
    back = "  %view = util.global.load @view : tensor<2x4xf32>\n"
    row = f"{back}  %row = flow.tensor.reshape %view : tensor<2x4xf32> -> {ROW}"
    program, encoder, found = parts(
        *WEIGHTS, constant, stores("four", product("two", "two"), "%product"),
        stores("view", view, "%view", "tensor<2x4xf32>"), stores("row", row, "%row"),
        stores("folded", product("row", "numbers"), "%product"), main("four", "row", "folded"),
    )  # fmt: skip
    assert (len(found.encoded), keys(found)) == (1, ["layer.weights"])
    assert program.count("arith.mulf") == 1
    assert program.count("flow.tensor.reshape") == 2
    assert encoder.count("flow.tensor.reshape") == 2


def test_views_that_the_encoder_alone_needs_leave_the_program() -> None:
    copy = f"{load('weights')}  %view = flow.tensor.reshape %weights : {ROW} -> {ROW}"
    program, _, found = parts(
        *WEIGHTS, stores("view", copy, "%view"),
        stores("folded", product("view", "numbers"), "%product"), main("folded"),
    )  # fmt: skip
    assert (len(found.encoded), keys(found)) == (1, [])
    assert "util.initializer" not in program


TRACED = f'{load("weights")}  flow.tensor.trace "weights" = [%weights : {ROW}]'
STATE = (f"util.global private mutable @state : {ROW}", "util.initializer {", product("weights", "numbers"),
         f"  util.global.store %product, @state : {ROW}\n  util.return\n}}")  # fmt: skip


@pytest.mark.parametrize(
    "made", [(stores("kept", TRACED, "%weights"), main("kept")), (*STATE, main("state"))], ids=["traced", "state"]
)
def test_what_does_more_than_to_compute_and_what_may_change_stay(made: tuple[str, ...]) -> None:
    program, _, found = parts(*WEIGHTS, *made)
    assert found.encoded == ()
    assert program.count("util.initializer") == 1
    assert "layer.weights" in program


def test_a_key_tells_encoders_apart() -> None:
    def key(text: str) -> str:
        return parts(*CHAIN, text)[2].encoded[0].name.key

    assert key(main("folded")) == key(main("folded")) != key(main("squared"))


def test_what_is_computed_lies_in_the_scope_of_a_parameter_that_it_is_computed_from() -> None:
    found = parts(parameter("weights", "first"), parameter("numbers", "second"), *CHAIN[2:], main("folded"))[2]
    assert (found.encoded[0].name.scope, found.scopes, found.sources) == ("first", ("first",), ("first", "second"))


def test_a_parameter_may_have_no_scope() -> None:
    weights = WEIGHTS[0].replace('"model"::', "")
    program, _, found = parts(weights, stores("folded", product("weights", "weights"), "%product"), main("folded"))
    assert (found.scopes, found.sources) == (("",), ("",))
    assert f'#flow.parameter.named<"{found.encoded[0].name.key}">' in program


def test_text_that_iree_does_not_read_back_is_refused() -> None:
    with pytest.raises(UserError, match="IREE does not read its own text of the program"):
        parts(WEIGHTS[0].replace("layer.weights", 'layer."weights"'), main("weights"))


def test_programs_of_other_devices_are_refused() -> None:
    target = '#hal.device.target<"vulkan", [#hal.executable.target<"vulkan-spirv", "vulkan-spirv-fb">]>'
    device = f"util.global private @__device_0 = {target} : !hal.device"
    with pytest.raises(UserError, match="runs on vulkan: parameters are encoded for programs on the CPU alone"):
        parts(device, *CHAIN, main("folded"))
