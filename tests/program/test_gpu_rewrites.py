"""Rewrites of the whole program on GPUs: which are tried, and that what they make is compiled and scheduled there."""

from __future__ import annotations

from pathlib import Path

import pytest
from attention_programs import LOOPS, Attention
from fixed_targets import FIXED_CUDA, FIXED_VULKAN
from folders import TESTS
from permuted_channels import ending
from rewriting import rewritten_variants

from mlir_sched.program.building import build_variant
from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target

pytestmark = pytest.mark.promise

NETWORKS = {"convolutional": {"channels_last"}, "transformer": set[str]()}
SIZES = dict(zip(LOOPS, (1, 2, 32, 16, 32, 16), strict=True))


@pytest.mark.landing
@pytest.mark.parametrize("target", [FIXED_VULKAN, FIXED_CUDA], ids=["vulkan", "cuda"])
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_rewritten_for_a_gpu(name: str, target: Target) -> None:
    path = TESTS / "exported" / f"{name}.mlir"
    variants = {variant.name: variant for variant in rewritten_variants(path, target).variants}
    assert NETWORKS[name] <= set(variants)
    assert not [name for name in variants if "packed" in name or "padd" in name], "those are for a CPU's caches"
    for variant in variants.values():
        built = build_variant(path, target, variant, ())
        assert built.vmfb
        assert any(can_tune(task, Space.default(target), target) for task in built.model.tasks)


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("target", [FIXED_VULKAN, FIXED_CUDA], ids=["vulkan", "cuda"])
def test_attention_becomes_dispatches_that_are_scheduled(target: Target, tmp_path: Path) -> None:
    path = tmp_path / "attention.mlir"
    path.write_text(Attention().text(sizes=SIZES))
    (variant,) = rewritten_variants(path, target).variants
    assert variant.name == "decomposed_attention"
    scores, *others = build_variant(path, target, variant, ()).model.tasks
    assert scores.not_tunable == "it takes a value of type f32 that is computed at run time", "its scale is an argument"
    assert [can_tune(task, Space.default(target), target) for task in others] == [True, True]


def test_small_images_are_not_read_in_runs_of_channels_on_a_gpu(here: Target, tmp_path: Path) -> None:
    path = tmp_path / "shuffled.mlir"
    path.write_text(ending("a product"))
    on_cpu, on_gpu = (rewritten_variants(path, target).variants for target in (here, FIXED_VULKAN))
    assert {"permuted_weights", "channels_last"} <= {variant.name for variant in on_cpu}
    assert "channels_last" in {variant.name for variant in on_gpu}
    assert "permuted_weights" not in repr(on_gpu), "neither alone nor in front of another rewrite"
