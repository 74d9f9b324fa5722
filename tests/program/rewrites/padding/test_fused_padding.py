"""Padding that convolutions read where it is: no padded copy is left, and what is read otherwise stays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from channels_first_networks import function, layer, padded, separable
from iree.compiler import ir
from iree_cases import FLAGS
from plans import convolution_sites
from rewriting import abi, applies, assert_same_results, compiled_to, library_for, rewritten_variants, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.convolution.winograd import Convolutions
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.padding.fused import FusedPadding
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context

pytestmark = pytest.mark.promise

PACKED = Plan((ChannelsLast(), PackedWeights()))
BOTH = Plan((*PACKED.rewrites, FusedPadding()))


def dispatches(model: Path, flags: tuple[str, ...]) -> list[str]:
    return [line for line in compiled_to(model, flags, "flow").splitlines() if "flow.dispatch @" in line]


def test_a_network_computes_the_same_without_a_padded_copy(tmp_path: Path) -> None:
    model = write(tmp_path, separable())
    copied = dispatches(model, library_for(PACKED, model, tmp_path))
    flags = (*library_for(BOTH, model, tmp_path), *BOTH.flags)
    marks = rewrites_in(compiled_to(model, flags, "preprocessing"))
    assert marks[BOTH.steps[-1].name] == 1
    assert not any("+" in mark for mark in marks), "dispatches of two compositions would differ by the name alone"
    fused = dispatches(model, flags)
    assert any("memcpy" in line for line in copied)
    assert not any("memcpy" in line for line in fused)
    assert len([line for line in fused if "transpose" not in line]) == 3
    image = np.random.default_rng(0).integers(-4, 5, (1, 16, 8, 8)).astype(np.float32)
    assert_same_results(model, flags, [image], least=100)


def test_the_variant_extends_those_with_fewer_refinements(tmp_path: Path, here: Target) -> None:
    found = {variant.name: variant for variant in rewritten_variants(write(tmp_path, separable()), here).variants}
    assert {variant.plan.refines for variant in (found[BOTH.name], found[PACKED.name])} == {LAYOUT}
    assert found[LAYOUT].plan.refines == ""
    extended = [(a.name, b.name) for a in found.values() for b in found.values() if a.plan.extends(b.plan)]
    assert extended == [(BOTH.name, PACKED.name)]


READ = """
  %doubled = arith.addf %pad1, %pad1 : tensor<1x128x10x10xf32>
  %unused = util.optimization_barrier %doubled : tensor<1x128x10x10xf32>"""


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(("%edge1 = arith.constant 0.0", "%edge1 = arith.constant 1.0"), id="padded with ones"),
        pytest.param(("  %zero1 =", f"{READ}\n  %zero1 ="), id="read by another op, too"),
    ],
)
def test_other_padding_stays(change: tuple[str, str], tmp_path: Path) -> None:
    text = separable().replace(*change)
    assert text != separable()
    assert not applies(FusedPadding(), write(tmp_path, text))


def test_every_padding_of_a_kind_has_to_be_one_that_only_convolutions_read(tmp_path: Path) -> None:
    again = padded("%out1", "1x128x8x8", "1x128x10x10", 5) + READ.replace("%pad1", "%pad5")
    text = separable().replace("  %zero2 =", f"  {again}\n  %zero2 =")
    assert applies(FusedPadding(), write(tmp_path, separable()))
    assert not applies(FusedPadding(), write(tmp_path, text))


def with_window() -> str:
    """Return a product, a padded depthwise convolution with a stride of 2, and a padded 3x3 convolution."""
    pads = [padded("%out0", "1x128x16x16", "1x128x18x18", 1), padded("%out1", "1x128x8x8", "1x128x10x10", 2)]
    layers = [
        layer(0, "conv_2d_nchw_fchw", "%image", ("1x16x16x16", "128x16x1x1", "1x128x16x16"), 1),
        layer(1, "depthwise_conv_2d_nchw_chw", "%pad1", ("1x128x18x18", "128x3x3", "1x128x8x8"), 2, pads[0]),
        layer(2, "conv_2d_nchw_fchw", "%pad2", ("1x128x10x10", "64x128x3x3", "1x64x8x8"), 1, pads[1]),
    ]
    return function("1x16x16x16", "".join(layers), "%out2", "1x64x8x8")


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("plan", [BOTH, PACKED, Plan((ChannelsLast(),))], ids=lambda plan: plan.name)
def test_another_algorithm_for_some_convolutions_leaves_the_rest_as_before(plan: Plan, tmp_path: Path) -> None:
    model = write(tmp_path, with_window())
    with script_context(), ir.Location.unknown():
        (shape,) = Convolutions().shapes(StagedProgram(ir.Module.parse(abi(model))))
    rewrite = plan.with_algorithms(convolution_sites(shape))
    assert rewrite.name == plan.name.replace("channels_last", f"channels_last+winograd({shape})")
    flags = (*library_for(rewrite, model, tmp_path), *rewrite.flags)
    image = np.random.default_rng(0).integers(-4, 5, (1, 16, 16, 16)).astype(np.float32)
    expected = run(compile_to_bytes(model, FLAGS), [image])
    found = run(compile_to_bytes(model, flags), [image])
    np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())
