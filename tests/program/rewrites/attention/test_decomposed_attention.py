"""Attention as products and a softmax: the same numbers, and attention that is left alone."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from attention_programs import PLAIN, SIZES, TANH, Attention, causal, layer, network_with_attention
from channels_first_networks import weights
from iree_cases import FLAGS, TARGET
from rewriting import applies, compiled_to, library_for, rewritten_variants, run, write

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.outcome import Verdict
from mlir_sched.pipeline import tune
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.attention.decomposed import DecomposedAttention
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.tuning.options import TuneOptions

pytestmark = pytest.mark.promise

REWRITE = DecomposedAttention()
BOTH = Plan((DecomposedAttention(), PackedWeights()))
CASES = {
    "plain": PLAIN,
    "one head": Attention("md", "kd", "kn", "mn"),
    "heads beside tokens": Attention("mhd", "khd", "khn", "mhn"),
    "transposed keys, result and values": Attention("hmd", "hdk", "nhk", "nhm"),
    "batch and heads": Attention("bhmd", "bhkd", "bhkn", "bhmn"),
    "keys and values that all heads share": Attention("hmd", "kd", "kn", "hmn"),
    "mask": replace(PLAIN, mask="hmk"),
    "mask of all heads": replace(PLAIN, mask="mk"),
    "mask of keys": replace(PLAIN, mask="hk", mask_type="i1"),
    "transposed mask": replace(PLAIN, mask="khm"),
    "boolean mask": replace(PLAIN, mask="hmk", mask_type="i1"),
    "scores that are changed": replace(PLAIN, body=TANH),
    "scores that are changed, and a mask": replace(PLAIN, body=TANH, mask="mk"),
}
INDEX = """%i = iree_linalg_ext.index 1 : index
    %j = arith.index_cast %i : index to i32
    %t = arith.sitofp %j : i32 to f32"""
LEFT_ALONE = {
    "half precision": replace(PLAIN, element="f16").text(),
    "a mask of bytes": replace(PLAIN, mask="hmk", mask_type="i8").text(),
    "several loops over keys": Attention("hmd", "hbkd", "hbkn", "hmn").text(),
    "queries that all heads share": Attention("md", "hkd", "hkn", "hmn").text(),
    "dynamic": PLAIN.text(sizes={**SIZES, "k": -1}),
    "a score that depends on its place": replace(PLAIN, body=INDEX).text(),
    "no attention": "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }",
}


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", CASES)
def test_an_attention_computes_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    model = write(tmp_path, case.text())
    flags = library_for(REWRITE, model, tmp_path)
    text = compiled_to(model, flags, "preprocessing")
    assert rewrites_in(text) == {"decomposed_attention": 1}
    assert "iree_linalg_ext" not in text
    inputs = case.inputs()
    found = run(compile_to_bytes(model, flags), inputs)
    np.testing.assert_allclose(found, case.expected(inputs), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name: str, tmp_path: Path) -> None:
    assert not applies(REWRITE, write(tmp_path, LEFT_ALONE[name]))


@pytest.mark.landing
def test_a_causal_attention_of_pytorch_is_three_dispatches(tmp_path: Path) -> None:
    model = write(tmp_path, causal(32, 16))
    flags = library_for(REWRITE, model, tmp_path)
    assert compiled_to(model, flags, "flow").count("flow.executable private") == 3
    inputs = [*np.random.default_rng(0).standard_normal((3, 1, 2, 32, 16), np.float32)]
    expected = run(compile_to_bytes(model, FLAGS), inputs)
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), inputs), expected, rtol=1e-5, atol=1e-6)


def test_what_is_no_attention_of_this_kind_stays_beside_those_that_are(tmp_path: Path) -> None:
    text = PLAIN.text() + PLAIN.text("again") + replace(PLAIN, body=TANH).text("other")
    model = write(tmp_path, text + replace(PLAIN, element="f16").text("half"))
    text = compiled_to(model, library_for(REWRITE, model, tmp_path), "preprocessing")
    assert rewrites_in(text) == {"decomposed_attention": 3}
    assert text.count("iree_linalg_ext.attention") == 1


@pytest.mark.parametrize(
    "other",
    [replace(PLAIN, body=TANH), Attention(result="nhm"), replace(PLAIN, mask="hmk")],
    ids=["body", "maps", "mask"],
)
def test_a_library_for_another_attention_is_an_error(other: Attention, tmp_path: Path) -> None:
    flags = library_for(REWRITE, write(tmp_path, PLAIN.text()), tmp_path)
    with pytest.raises(ModelCompileError):
        compile_to_bytes(write(tmp_path, other.text()), flags)


@pytest.mark.landing
def test_the_weights_of_a_layer_are_packed_as_well(tmp_path: Path) -> None:
    model = write(tmp_path, layer())
    flags = library_for(BOTH, model, tmp_path)
    tokens = np.random.default_rng(0).integers(0, 7, (1, 32))
    expected = run(compile_to_bytes(model, FLAGS), [tokens])
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [tokens]), expected, rtol=1e-4, atol=1e-5)
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))[BOTH.steps[-1].name] == 3
    names = {variant.name: variant.plan.refines for variant in rewritten_variants(model, TARGET).variants}
    assert names["decomposed_attention"] == ""
    assert names[BOTH.name] == "decomposed_attention"


@pytest.mark.landing
def test_a_network_with_attention_is_computed_channels_last_with_its_attention_decomposed(tmp_path: Path) -> None:
    whole = Plan((ChannelsLast(), DecomposedAttention(), PackedWeights()))
    model = write(tmp_path, network_with_attention())
    found = {variant.name: variant for variant in rewritten_variants(model, TARGET).variants}
    layout = found[f"{LAYOUT}+packed_weights"]
    assert found[whole.name].plan.extends(layout.plan)
    assert found[whole.name].plan.refines == LAYOUT
    flags = library_for(whole, model, tmp_path)
    marks = rewrites_in(compiled_to(model, flags, "preprocessing"))
    assert marks["packed_weights"] == 1
    assert "iree_linalg_ext.attention" not in compiled_to(model, flags, "flow")
    image = np.random.default_rng(0).integers(-2, 3, (1, 8, 8, 8)).astype(np.float32)
    first, second = (np.array(json.loads(weights(taps, n))) for n, taps in enumerate(("32x8", "64x32")))
    pixels = second @ (first @ image.reshape(8, 64))
    scores = np.exp(0.001 * pixels.T @ pixels)
    expected = pixels @ (scores / scores.sum(axis=1, keepdims=True)).T
    result = run(compile_to_bytes(model, flags), [image])
    np.testing.assert_allclose(result, expected.reshape(result.shape), rtol=1e-4, atol=1e-4)


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_an_attention_of_wide_heads_is_tuned_decomposed(tmp_path: Path) -> None:
    model = write(tmp_path, causal(64, 64))  # 10 times as fast as IREE's own code for it
    result = tune(model, tmp_path / "tuned", options=TuneOptions(trials=6, round_size=2, threads=1))
    assert result.program.verdict is Verdict.RIGHT
    assert result.trials == 6
    assert len(result.dispatches) == 3
    assert not [dispatch.name for dispatch in result.dispatches if "attention" in dispatch.name]
