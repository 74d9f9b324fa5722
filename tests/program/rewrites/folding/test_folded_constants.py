"""Numbers that scale and shift channels, folded into weights: the same results, and what is left alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from checked_rewrites import checked
from iree.compiler import ir
from iree_cases import FLAGS
from rewriting import assert_same_results, compiled_to, library_for, run, write
from scaled_channels import (
    BATCH_NORM,
    CONVOLUTION,
    LINEAR_OPS,
    MOVES,
    PRODUCT,
    Scaled,
    as_argument,
    as_parameters,
    branched,
    joined,
    moved_behind,
    moved_in_front,
    read_again,
    stepped,
    stepped_alone,
    stepping,
)
from scaled_scores import KEYS, SHARE, attention, inputs, products

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.flags import FUSED_PADDING
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.plan import Flags, KeptSite, Plan
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.attention.decomposed import DecomposedAttention
from mlir_sched.program.rewrites.dag_site import Handles
from mlir_sched.program.rewrites.folding.affine_run import AffineRun
from mlir_sched.program.rewrites.folding.chain import Chain
from mlir_sched.program.rewrites.folding.finding import sites
from mlir_sched.program.rewrites.folding.folded_constants import FoldedConstants
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.linalg_ops import slice_of
from mlir_sched.program.rewrites.linear import ahead, moves
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context

SCALED = CONVOLUTION.with_steps("mulf")
POINTWISE = Scaled("conv_2d_nchw_fchw", (1, 8, 4, 5), (8, 8, 1, 1), (1, 8, 4, 5), seed=1)
BEFORE = POINTWISE.with_steps().after("mulf")
PADDED = replace(CONVOLUTION, steps=("addf",), ahead=("addf", "pad"))
SQUARE = Scaled("matmul", (5, 8), (8, 8), (5, 8), steps=("addf",), ahead=("mulf",))
OTHER = replace(SQUARE, ahead=(), seed=1)
AGAIN = """
  %again = linalg.conv_2d_nchw_fchw ins(%image, %weights : tensor<1x3x6x7xf32>, tensor<8x3x3x3xf32>)
      outs(%start : tensor<1x8x4x5xf32>) -> tensor<1x8x4x5xf32>"""
DRAWN = """
  %none = tensor.empty() : tensor<8x1x1xf32>
  %first = arith.constant 0 : index
  %numbers0 = linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d1, d2)>],
      iterator_types = ["parallel", "parallel", "parallel"]} outs(%none : tensor<8x1x1xf32>) {
  ^bb0(%o: f32):
    %at = linalg.index 0 : index
    %drawn = tensor.extract %argument[%at, %first, %first] : tensor<8x1x1xf32>
    linalg.yield %drawn : f32
  } -> tensor<8x1x1xf32>
  %sums ="""
TWICE = """%z = arith.mulf %n, %half : f32
    %w = arith.mulf %x, %n : f32
    %y = arith.addf %w, %z : f32"""
LEFT_ALONE = {
    "a shift in front of padding": PADDED.text(),
    "a scale in front of other padding": BEFORE.after("mulf", "pad").text().replace(
        "tensor.yield %zero", "%one = arith.constant 1.0 : f32\n    tensor.yield %one"
    ),
    "a shift in front of more results": replace(
        BEFORE, weights=(16, 8, 1, 1), result=(1, 16, 4, 5), ahead=("addf",)
    ).text(),
    "one shift of queries": products(scale="addf %x, %s"),
    "scores that numbers of heads scale": products(scale="mulf"),
    "queries that are read again": products().replace("ins(%queries, %keys", "ins(%again, %keys").replace(
        "  %scores =", "  %again = arith.addf %queries, %queries : tensor<2x5x4xf32>\n  %scores ="
    ),
    "scores of an attention that are not scaled": attention(scale=1.0),
    "numbers of rows in front": replace(CONVOLUTION, steps=(), ahead=("mulf",), read=2).text(),
    "what is scaled in front has another reader": read_again(BEFORE.text(), "%ahead0"),
    "numbers that a body with a constant reads twice": SCALED.text()
    .replace("%y = arith.mulf %x, %n : f32", TWICE)
    .replace("  %zero =", "  %half = arith.constant 0.5 : f32\n  %zero ="),
    "numbers that a body reads from an argument": as_argument(SCALED.text(), "numbers0")
    .replace("%numbers0: ", "%argument: ")
    .replace("\n  %sums =", DRAWN),
    "one shift": CONVOLUTION.with_steps("addf").text(),
    "a square": CONVOLUTION.with_steps("mulf %x, %x").text(),
    "a quotient by the result": CONVOLUTION.with_steps("divf %n, %x").text(),
    "numbers of columns": replace(CONVOLUTION, channel=3).text(),
    "numbers that are an argument": as_argument(SCALED.text(), "numbers0"),
    "weights that are an argument": as_argument(SCALED.text(), "weights"),
    "sums that start with an argument": SCALED.text()
    .replace("outs(%start", "outs(%begin")
    .replace("%image: ", "%begin: tensor<1x8x4x5xf32>, %image: "),
    "the sums have another reader": read_again(CONVOLUTION.text(), "%sums"),
    "a front that one of several linear ops cannot take": branched(
        SQUARE, Scaled("matmul", (5, 8), (5, 5), (5, 8), left=True, steps=())
    ),
    "a front that something else reads beside linear ops": read_again(branched(SQUARE, OTHER), "%ahead0"),
    "a front of two linear ops with the same weights, and of another one": branched(
        SQUARE, OTHER, replace(OTHER, seed=2)
    ).replace("ins(%ahead0, %other0_weights", "ins(%ahead0, %weights"),
    "a shift of two products, one of which has none of its own": branched(
        replace(SQUARE, ahead=("mulf", "addf")), OTHER.with_steps()
    ),
    "the weights have another reader": read_again(SCALED.text(), "%again").replace("  %both", AGAIN + "\n  %both"),
}  # fmt: skip


@contextmanager
def found(text: str) -> Iterator[list[Chain]]:
    """Give the chains of a program."""
    with script_context(), ir.Location.unknown():
        program = WalkedProgram(ir.Module.parse(text))
        yield [site for site in sites(program) if isinstance(site, Chain)]


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name: str) -> None:
    with found(SCALED.text()) as known, found(LEFT_ALONE[name]) as chains_:
        assert len(known) == 1
        assert chains_ == []


@pytest.mark.promise
def test_every_linear_op_computes_the_same_behind_one_addition(tmp_path: Path) -> None:
    """One of them is the beginning of another one."""
    names = {f"case{number}": name for number, name in enumerate(LINEAR_OPS)}
    model = write(tmp_path, "".join(LINEAR_OPS[name].text(function) for function, name in names.items()))
    flags = library_for(FoldedConstants(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"folded_constants": len(LINEAR_OPS)}
    plain, folded = compile_to_bytes(model, FLAGS), compile_to_bytes(model, flags)
    for function, name in names.items():
        inputs = [LINEAR_OPS[name].values("image")]
        expected = run(plain, inputs, function)
        assert np.unique(expected).size > 10, name
        np.testing.assert_array_equal(run(folded, inputs, function), expected, err_msg=name)


@pytest.mark.promise
def test_a_scale_of_scores_goes_into_the_weights_of_the_queries(tmp_path: Path) -> None:
    model, arguments = write(tmp_path, products()), inputs()[::2]
    flags = library_for(FoldedConstants(), model, tmp_path)
    assert_same_results(model, flags, arguments, least=10)
    assert "arith.mulf" in compiled_to(model, FLAGS, "flow")
    assert "arith.mulf" not in compiled_to(model, flags, "flow")


@pytest.mark.promise
def test_a_scale_of_attention_goes_into_the_weights_of_the_queries(tmp_path: Path) -> None:
    model = write(tmp_path, attention())
    flags = library_for(Plan((DecomposedAttention(),)), model, tmp_path)
    results = run(compile_to_bytes(model, flags), inputs())
    np.testing.assert_allclose(results, run(compile_to_bytes(model, FLAGS), inputs()), rtol=1e-5, atol=1e-6)
    scale = f"arith.constant {SHARE:.6e} : f32"
    assert scale in compiled_to(model, FLAGS, "flow")
    assert scale not in compiled_to(model, flags, "flow")


def test_one_linear_op_takes_a_scale_of_scores_and_the_other_one_its_own() -> None:
    scaled = stepped("%keys", "mulf %x, %s", "%made", (2, 4, 7), 0, "%own", np.array([4.0]))
    made = f"""
  %by = arith.constant dense<2.0> : tensor<2x5x7xf32>
  %place = tensor.empty() : {KEYS}
  %nothing = linalg.fill ins(%zero : f32) outs(%place : {KEYS}) -> {KEYS}
  %made = linalg.batch_matmul ins(%tokens, %by : tensor<2x4x5xf32>, tensor<2x5x7xf32>)
      outs(%nothing : {KEYS}) -> {KEYS}{scaled}
  %room ="""
    text = products().replace(f"%keys: {KEYS}", "%tokens: tensor<2x4x5xf32>").replace("\n  %room =", made)
    with found(text) as known:
        assert [chain.along for chain in known] == [(0, 0, 0, 0, 0), (0,)]


@pytest.mark.promise
def test_numbers_pass_what_takes_a_part_or_repeats(tmp_path: Path) -> None:
    made = {"front": moved_in_front, "behind": moved_behind}
    names = [(side, name) for side in made for name in MOVES]
    text = "".join(made[side](name, f"{side}_{name}") for side, name in names)
    with found(text) as known:
        assert len(known) == len(names) - 2, "numbers stay behind a part of the channels, and behind several parts"
    model = write(tmp_path, text)
    flags = library_for(FoldedConstants(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"folded_constants": len(names)}
    plain, folded = compile_to_bytes(model, FLAGS), compile_to_bytes(model, flags)
    for side, name in names:
        shape = MOVES[name][1] if side == "front" else (*MOVES[name][1][:-1], 4)
        inputs = [np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)]
        expected = run(plain, inputs, f"{side}_{name}")
        assert np.unique(expected).size > 5
        np.testing.assert_array_equal(run(folded, inputs, f"{side}_{name}"), expected, err_msg=f"{side} {name}")


@pytest.mark.promise
def test_what_several_linear_ops_read_goes_into_the_weights_of_all(tmp_path: Path) -> None:
    text = branched(PRODUCT, replace(PRODUCT, ahead=(), seed=1), replace(PRODUCT, ahead=(), seed=2))
    with found(text) as known:
        assert [len(chain.ahead) for chain in known] == [2, 2, 2]
    model, inputs = write(tmp_path, text), [PRODUCT.values("image")]
    flags = library_for(FoldedConstants(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"folded_constants": 3}
    assert_same_results(model, flags, inputs, least=10)


@pytest.mark.promise
def test_what_scales_and_shifts_no_linear_op_is_one_product_and_one_addition(tmp_path: Path) -> None:
    text = stepping([*BATCH_NORM, "negf %x", "subf %s, %x"], (1, 8, 4, 5), 1)
    model, inputs = write(tmp_path, text), [POINTWISE.values("image")]
    flags = library_for(FoldedConstants(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"folded_constants": 1}
    assert_same_results(model, flags, inputs, least=10)
    (dispatch,) = re.findall(r"flow.dispatch @\S+\(([^)]*)\)", call_of(compiled_to(model, flags, "flow")))
    assert len(dispatch.split(",")) == 3


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        (stepping(("mulf", "addf"), (4, 6), 1), []),
        (stepping(("mulf", "addf", "mulf"), (4, 6), 1), [3]),
        (stepping(("mulf", "mulf %x, %s"), (4, 6), 1), [2]),
        (joined(stepping(("mulf",), (4, 6), 1), stepping(("mulf",), (4, 6), 0)), []),
        (read_again(stepping(("mulf", "mulf"), (4, 6), 1), "%step0"), []),
        (read_again(CONVOLUTION.text(), "%sums"), [4]),
    ],
    ids=["two", "three", "a scalar", "other channels", "another reader", "behind what is read again"],
)
def test_which_numbers_are_computed_together(text: str, steps: list[int]) -> None:
    with script_context(), ir.Location.unknown():
        program = WalkedProgram(ir.Module.parse(text))
        assert [len(site.steps) for site in sites(program) if isinstance(site, AffineRun)] == steps


def test_a_kind_with_any_numbers_that_vary_is_left_alone() -> None:
    with found(SCALED.text("one") + as_argument(SCALED.text("other"), "numbers0")) as known:
        assert known == []


def test_chains_that_only_their_readers_tell_apart_are_left_alone() -> None:
    with found(CONVOLUTION.text() + read_again(CONVOLUTION.text("ends"), "%step1")) as known:
        assert known == []


@pytest.mark.promise
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (SCALED.text(), "%sums"),
        (BEFORE.text(), "%ahead0"),
        (branched(SQUARE, OTHER), "%ahead0"),
        (stepping(BATCH_NORM, (4, 6), 1), "%step1"),
    ],
    ids=["behind", "in front", "in front of two", "alone"],
)
def test_a_library_does_not_fold_what_has_got_another_reader(text: str, value: str, tmp_path: Path) -> None:
    flags = library_for(FoldedConstants(), write(tmp_path, text), tmp_path)
    model = write(tmp_path, read_again(text, value))
    with pytest.raises(ModelCompileError):
        compile_to_bytes(model, flags)


@pytest.mark.promise
@pytest.mark.parametrize("stored", ["in the module", "as parameters"])
def test_no_call_computes_constants(stored: str, tmp_path: Path) -> None:
    """A call has one dispatch, which reads the image, the scaled weights and one vector."""
    text = LINEAR_OPS["depthwise"].text()
    model = write(tmp_path, as_parameters(text) if stored == "as parameters" else text)
    flow = compiled_to(model, library_for(FoldedConstants(), model, tmp_path), "flow")
    (dispatch,) = re.findall(r"flow.dispatch @\S+\(([^)]*)\)", call_of(flow))
    assert len(dispatch.split(",")) == 3


def call_of(flow: str) -> str:
    """Return the ops of a call of ``main``."""
    return flow.partition("util.func public @main")[2].partition("util.return")[0]


@pytest.mark.promise
def test_the_results_are_within_the_bound_of_rounding(tmp_path: Path) -> None:
    case = Scaled("matmul", (16, 512), (512, 24), (16, 24), exact=False, ahead=("mulf", "addf"))
    model = write(tmp_path, case.text())
    image, weights = (case.values(name).astype(np.float64) for name in ("image", "weights"))
    slope, start = (case.factors(number).astype(np.float64) for number in range(2))
    mean, scale, gain, shift = (case.numbers(number).astype(np.float64) for number in range(4))
    exact = ((image * slope + start) @ weights - mean) * scale * gain + shift
    sums = (np.abs(image * slope) + np.abs(start)) @ np.abs(weights)
    terms = (sums + np.abs(mean)) * np.abs(scale * gain) + np.abs(shift)
    bound = (512 + 2 * 3 + 2) * np.finfo(np.float32).eps * terms
    results = run(compile_to_bytes(model, library_for(FoldedConstants(), model, tmp_path)), [case.values("image")])
    assert (np.abs(results - exact) <= bound).all()
    for mistake in (
        ((image * slope + start) @ weights - np.roll(mean, 1)) * scale * gain + shift,
        ((image * slope + np.roll(start, 1)) @ weights - mean) * scale * gain + shift,
    ):
        assert (np.abs(mistake - exact) > bound).mean() > 0.9


@pytest.mark.promise
def test_one_product_and_one_addition_are_within_the_bound_of_rounding(tmp_path: Path) -> None:
    case = Scaled("", (16, 24), (), (16, 24), exact=False)
    model, values = write(tmp_path, stepped_alone(case)), case.values("image")
    mean, scale, gain, shift = (case.numbers(number).astype(np.float64) for number in range(4))
    exact = (values - mean) * scale * gain + shift
    terms = (np.abs(values) + np.abs(mean)) * np.abs(scale * gain) + np.abs(shift)
    bound = (1 + 2 * 2 + 2) * np.finfo(np.float32).eps * terms
    results = run(compile_to_bytes(model, library_for(FoldedConstants(), model, tmp_path)), [values])
    assert (np.abs(results - exact) <= bound).all()
    mistake = (values - np.roll(mean, 1)) * scale * gain + shift
    assert (np.abs(mistake - exact) > bound).mean() > 0.9


@dataclass(frozen=True)
class OfTheNeighbour(FoldedConstants):
    """A mistake: the second layer gets the numbers of the first one."""

    def sites(self, program: WalkedProgram) -> list[Chain | AffineRun]:
        return super().sites(program)[::-1]

    def inputs(self, op: Any, site: Chain | AffineRun) -> list[Any]:
        own = super().inputs(op, site)
        assert isinstance(site, Chain)
        if list(site.inputs[1].type.shape) != [*POINTWISE.weights]:
            return own
        handles, numbers = Handles(op), [way for each in site.behind for way in each.numbers]
        return [*own[: -len(numbers)], *(handles.value((*site.image, *way)) for way in numbers)]


@pytest.mark.promise
@pytest.mark.parametrize(("made", "right"), [(FoldedConstants(), True), (OfTheNeighbour(), False)])
def test_the_statistics_of_a_neighbour_are_found_by_the_checks(
    made: FoldedConstants, right: bool, tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    assert ("wrong" in checked(made, joined(CONVOLUTION.text(), POINTWISE.text()), tmp_path, here)) != right


@pytest.mark.promise
def test_a_shift_that_is_folded_through_padding_is_found_by_the_checks(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead.Back, "takes_shifts", True)
    assert "wrong" in checked(FoldedConstants(), PADDED.text(), tmp_path, here)


@pytest.mark.promise
def test_numbers_that_are_off_by_one_channel_behind_a_slice_are_found_by_the_checks(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def off_by_one(value: Any, offsets: Sequence[int], sizes: Sequence[int]) -> Any:
        return slice_of(value, [at + 1 if at else 0 for at in offsets], sizes)

    monkeypatch.setattr(moves, "slice_of", off_by_one)
    assert "wrong" in checked(FoldedConstants(), moved_in_front("channels"), tmp_path, here)


@pytest.mark.promise
def test_a_layout_is_decided_for_the_folded_program(tmp_path: Path) -> None:
    model = write(tmp_path, joined(CONVOLUTION.text(), POINTWISE.text()))
    plan = Plan((ChannelsLast(),))
    flags = library_for(plan, model, tmp_path)
    inputs = [CONVOLUTION.values("image")]
    expected = run(compile_to_bytes(model, FLAGS), inputs)
    np.testing.assert_array_equal(run(compile_to_bytes(model, flags), inputs), expected)
    assert plan.name == "channels_last"
    flow = compiled_to(model, flags, "flow").partition("util.func public @main")[2]
    operands = re.findall(r"flow.dispatch @\S+\(([^)]*)\)", flow)
    assert max(len(each.split(",")) for each in operands) == 3


def test_flags_alone_leave_the_program_as_it_is_wherever_they_apply() -> None:
    plan = Plan(own_flags=Flags("fused-padding", (FUSED_PADDING,))).keeping([KeptSite("padding", "1x3x6x7")])
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(CONVOLUTION.after("pad").text()))
        assert program.applies(FoldedConstants())
        text = pipeline.script(plan.steps, program, plan.name, plan.but).text
    assert "separate_padding" in text
    assert "folded_constants" not in text
