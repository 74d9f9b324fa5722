"""Program variants are compiled and timed in an order: the layout first, which may dominate all others."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from attention_programs import layer
from channels_first_networks import function, network, separable
from channels_first_networks import layer as convolution
from rewriting import write

from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.compile_policy import EXTENDED, NO_TIME_TO_COMPILE, REFINED_AT_ONCE, CompilePolicy
from mlir_sched.program.variants.early_decisions import ATTENTION, DECIDED_EARLY, DOMINATED, LAYOUT
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import RacingOptions, RunnerOptions
from mlir_sched.targets.target import Target

pytestmark = pytest.mark.promise

FEWER, REFINED = f"{LAYOUT}+packed_weights", f"{LAYOUT}+packed_weights+fused_padding"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("building"), network())


def timed(model: Path, target: Target) -> AbstractContextManager[MeasuredPrograms]:
    """Open what makes and times the programs of a model, for a few hundredths of a second each."""
    options = RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))
    return MeasuredPrograms.open(Source(model, target), options)


class Told(CompilePolicy):
    """A policy that is told whether the layout dominates, and remembers what it was asked."""

    def __init__(self, *, dominant: bool, wanted: Sequence[str] = (LAYOUT, "O3")) -> None:
        self.dominant = dominant
        self.wanted = wanted
        self.asked: list[str] = []

    def should_compile(self, name: str) -> bool:
        self.asked.append(name)
        return name in self.wanted

    def dominates(self, name: str, *, far_faster: bool) -> bool:
        assert name in DECIDED_EARLY
        assert isinstance(far_faster, bool)
        self.asked.append("dominates")
        return self.dominant


class AtOnce(Told):
    """A policy that has what the profile speaks for refined at once."""

    def refines_at_once(self) -> bool:
        return True

    @property
    def hurried(self) -> bool:
        return True


def test_the_layout_is_tried_first_and_may_be_all(model: Path, here: Target) -> None:
    policy = Told(dominant=True)
    with timed(model, here) as times:
        variants = build_variants(times, policy)
    assert policy.asked == [LAYOUT, "dominates"]
    assert [built.variant.name for built in variants.built] == ["default", LAYOUT]
    assert set(variants.left_out.values()) == {DOMINATED.format(LAYOUT)}
    assert {"O3", "data-tiling", "contiguous_filters"} <= variants.left_out.keys()


@pytest.mark.landing
def test_a_layout_that_settles_nothing_is_a_variant_among_others(model: Path, here: Target) -> None:
    policy = Told(dominant=False)
    with timed(model, here) as times:
        variants = build_variants(times, policy)
    assert policy.asked[:2] == [LAYOUT, "dominates"]
    assert {built.variant.name for built in variants.built} - {"O3"} == {"default", LAYOUT}
    assert set(variants.left_out.values()) == {NO_TIME_TO_COMPILE}
    assert variants.dominant == ()
    refinements = [name for name in policy.asked[2:] if "packed_weights" in name]
    assert policy.asked[2:] == [*refinements, "data-tiling", *policy.asked[3 + len(refinements) :]]


@pytest.mark.landing
@pytest.mark.parametrize("compiled", [REFINED, FEWER, ""])
def test_a_layout_that_the_profile_speaks_for_may_be_refined_at_once(
    compiled: str, tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.program.variants.early_decisions.REPLACED_SHARE", -1.0)
    policy = AtOnce(dominant=False, wanted=(LAYOUT, compiled))
    with timed(write(tmp_path, separable()), here) as times:
        variants = build_variants(times, policy)
    built = [each.variant.name for each in variants.built]
    if compiled:
        assert built == ["default", compiled]
        assert variants.dominant == (LAYOUT,)
        assert variants.left_out[LAYOUT] == REFINED_AT_ONCE
        other = EXTENDED if compiled == REFINED else NO_TIME_TO_COMPILE
        assert set(variants.left_out.values()) == {REFINED_AT_ONCE, DOMINATED.format(LAYOUT), other}
    else:
        assert built == ["default", LAYOUT]
        assert variants.dominant == ()
    assert all(each.timing is not None for each in variants.built)


OF_HEADS = """
  %pixels = tensor.collapse_shape %out1 [[0, 1], [2, 3]] : tensor<1x64x8x8xf32> into tensor<64x64xf32>
  %heads = tensor.expand_shape %pixels [[0, 1], [2]] output_shape [4, 16, 64]
    : tensor<64x64xf32> into tensor<4x16x64xf32>
  %none = tensor.empty() : tensor<4x64x16xf32>
  %tokens = linalg.transpose ins(%heads : tensor<4x16x64xf32>) outs(%none : tensor<4x64x16xf32>) permutation = [0, 2, 1]
  %scale = arith.constant 0.25 : f32
  %result = iree_linalg_ext.attention <indexing_maps = [
    affine_map<(h, m, n, k, d) -> (h, m, d)>, affine_map<(h, m, n, k, d) -> (h, k, d)>,
    affine_map<(h, m, n, k, d) -> (h, k, n)>, affine_map<(h, m, n, k, d) -> ()>,
    affine_map<(h, m, n, k, d) -> (h, m, n)>]>
    ins(%tokens, %tokens, %tokens, %scale : tensor<4x64x16xf32>, tensor<4x64x16xf32>, tensor<4x64x16xf32>, f32)
    outs(%none : tensor<4x64x16xf32>) {
  ^bb0(%s: f32):
    iree_linalg_ext.yield %s : f32
  } -> tensor<4x64x16xf32>"""


def after_convolutions() -> str:
    """Return two convolutions and attention between the pixels of the second one's result."""
    sizes = ("1x8x8x8", "32x8x1x1", "1x32x8x8"), ("1x32x8x8", "64x32x1x1", "1x64x8x8")
    layers = (convolution(n, "conv_2d_nchw_fchw", ("%image", "%out0")[n], sizes[n], 1) for n in range(2))
    return function("1x8x8x8", "".join([*layers, OF_HEADS]), "%result", "4x64x16")


@pytest.mark.landing
def test_what_refines_attention_and_the_layout_comes_first(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.program.variants.early_decisions.REPLACED_SHARE", 0.0)
    monkeypatch.setattr("mlir_sched.program.variants.early_decisions.channels_first_share", lambda _: -1.0)
    both = f"{LAYOUT}+{ATTENTION}+packed_weights"
    policy = AtOnce(dominant=False, wanted=(both, f"{ATTENTION}+packed_weights"))
    with timed(write(tmp_path, after_convolutions()), here) as times:
        variants = build_variants(times, policy)
    assert [built.variant.name for built in variants.built] == ["default", both]
    assert variants.dominant == (ATTENTION,)


@pytest.mark.landing
def test_where_attention_takes_most_of_the_time_only_its_refinements_follow(tmp_path: Path, here: Target) -> None:
    refined = f"{ATTENTION}+packed_weights"
    policy = Told(dominant=True, wanted=(ATTENTION, refined))
    with timed(write(tmp_path, layer()), here) as times:
        variants = build_variants(times, policy)
    assert policy.asked == [ATTENTION, "dominates", refined]
    assert [built.variant.name for built in variants.built] == ["default", ATTENTION, refined]
    assert {"O3", "data-tiling", "packed_weights"} <= variants.left_out.keys()
    assert set(variants.left_out.values()) == {DOMINATED.format(ATTENTION)}


class Hurried(Told):
    """A policy of no variant, in a hurry."""

    expected_s = 0.0

    def should_compile(self, name: str) -> bool:
        self.asked.append(name)
        return False

    @property
    def hurried(self) -> bool:
        return True

    def note_costs(self, *, call_s: float, build_s: float) -> None:
        assert build_s > 0.0
        assert not self.asked, "the times are known before any other variant is asked for"
        self.expected_s = call_s


@pytest.mark.landing
def test_in_a_hurry_the_times_of_the_default_are_known_before_refinements_are_compiled(
    model: Path, here: Target
) -> None:
    policy = Hurried(dominant=False)
    with timed(model, here) as times:
        (default,) = build_variants(times, policy).built
    assert default.timing is not None
    assert default.profile is not None
    assert policy.expected_s == default.profile.total_s
