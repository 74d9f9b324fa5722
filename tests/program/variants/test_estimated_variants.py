"""The variants of a run without a device: which are compiled, given what a model says of their times."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from channels_first_networks import two_shapes
from fixed_targets import FIXED_CUDA
from plans import Named, Slow
from rewriting import write

from mlir_sched.evaluation import estimating
from mlir_sched.evaluation.estimating import EstimatedPrograms
from mlir_sched.evaluation.evaluator import Evaluators
from mlir_sched.outcome import Timing
from mlir_sched.program import building
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants import programs
from mlir_sched.program.variants.choosing import BuiltVariants, build_variants
from mlir_sched.program.variants.compile_policy import NO_TIME_TO_COMPILE, CompilePolicy
from mlir_sched.program.variants.early_decisions import DOMINATED, LAYOUT
from mlir_sched.program.variants.programs import Source
from mlir_sched.program.variants.rewritten import RewrittenVariants
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model

pytestmark = pytest.mark.promise


class Compiled(CompilePolicy):
    """A choice that has time for some variants.

    Args:
        names: Their names.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    def should_compile(self, name: str) -> bool:
        return name in self.names


def estimated(
    folder: Path, monkeypatch: pytest.MonkeyPatch, ratios: Mapping[str, float], choice: CompilePolicy | None = None
) -> BuiltVariants:
    """Return the variants of a network, whose code is their name, with these times relative to the default."""

    def build_variant(path: Path, target: Target, variant: Variant, *others: object) -> BuiltVariant:
        del others
        code = {"O3": "default"}.get(variant.name, variant.name)
        return BuiltVariant(variant, Model(str(path), (), (), target.flags), code.encode(), None, ())

    def estimate(built: BuiltVariant, reference: BuiltVariant | None, *others: object) -> BuiltVariant:
        del others
        assert (reference is None) == (built.variant.name == "default")
        return replace(built, timing=Timing.estimated(1 / ratios.get(built.variant.name, 1.0), 1.0))

    monkeypatch.setattr(building, "build_variant", build_variant)
    monkeypatch.setattr(programs, "build_variant", build_variant)
    monkeypatch.setattr(estimating, "with_estimate", estimate)
    monkeypatch.setattr("mlir_sched.program.variants.choosing.program_hash", lambda vmfb: vmfb.decode())
    source = Source(write(folder, two_shapes()), FIXED_CUDA)
    evaluators = Evaluators(lambda _: nullcontext(cast(Any, None)))
    return build_variants(EstimatedPrograms(source, evaluators, cast(Any, None)), choice)


def test_variants_with_other_code_are_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimated(tmp_path, monkeypatch, {LAYOUT: 1.5})
    names = [built.variant.name for built in found.built]
    assert names[0] == "default"
    assert {LAYOUT, "winograd"} < {*names}
    assert "O3" not in {*names, *found.left_out}
    assert not found.dominant
    assert found.space.plans[0].name == "default"


def test_a_far_faster_layout_leaves_the_others_no_chance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimated(tmp_path, monkeypatch, {LAYOUT: 3.0})
    assert [built.variant.name for built in found.built] == ["default", LAYOUT]
    assert found.left_out["winograd"] == DOMINATED.format(LAYOUT)
    assert found.dominant == (LAYOUT,)


def test_what_refines_a_far_faster_layout_is_estimated_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refined, other = Plan((Named(LAYOUT), Slow("packed"))), Plan((Named("other"),))
    rewritten = RewrittenVariants(tuple(Variant(plan) for plan in (Plan((Named(LAYOUT),)), refined, other)))
    monkeypatch.setattr(programs, "rewriting", lambda path, target: nullcontext(lambda: rewritten))
    found = estimated(tmp_path, monkeypatch, {LAYOUT: 3.0, refined.name: 6.0})
    ratios = {built.variant.name: built.measured.ratio for built in found.built}
    assert ratios == {"default": 1.0, LAYOUT: 3.0, refined.name: pytest.approx(6.0)}
    assert found.left_out["other"] == DOMINATED.format(LAYOUT)


def test_in_a_short_run_the_layout_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = estimated(tmp_path, monkeypatch, {}, Compiled(LAYOUT))
    assert [built.variant.name for built in found.built] == ["default", LAYOUT]
    assert found.left_out["winograd"] == NO_TIME_TO_COMPILE
