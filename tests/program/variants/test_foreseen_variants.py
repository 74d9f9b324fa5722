"""Where variants are predicted, the first two that compile are compiled, and the others left out by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from counted_programs import Counted
from fixed_targets import FIXED

from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import cpu_rewrites
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.choosing import BuiltVariants, build_variants
from mlir_sched.program.variants.compile_policy import FORESEEN_BEHIND, NOT_FORESEEN, CompilePolicy, Foreseen
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.programs import Source
from mlir_sched.program.variants.rewritten import flagged_variants
from mlir_sched.sampling import Value
from mlir_sched.tasks import Model

PACKED, REFINED, CONTIGUOUS = "packed_weights", f"{LAYOUT}+packed_weights", "contiguous_filters"
REWRITTEN = [Variant(plan) for plan in map(Plan, cpu_rewrites(1)) if plan.name in (PACKED, LAYOUT, REFINED, CONTIGUOUS)]
ALL = {*(variant.name for variant in flagged_variants(FIXED)[1:]), *(variant.name for variant in REWRITTEN)}


class Prophet(CompilePolicy):
    """Predicts an order."""

    def __init__(self, *order: str, ratios: Mapping[str, float], chosen: str = "") -> None:
        self.order, self.ratios, self.chosen = order, ratios, chosen
        self.spoken_for = ""

    @property
    def foresees(self) -> bool:
        return True

    def foreseen(self, default: BuiltVariant, variants: Sequence[Variant]) -> Foreseen | None:
        assert default.profile is not None
        assert {each.name for each in variants} == ALL
        return Foreseen(self.order, self.ratios, 9)

    def favoured(self, name: str) -> str:
        self.spoken_for = name
        return name

    def known(self, default: Model) -> Mapping[str, Value]:
        return {"variant": self.chosen} if self.chosen else {}


def built(policy: CompilePolicy, folder: Path, **seconds: float) -> tuple[Counted, BuiltVariants]:
    model = folder / "model.mlir"
    model.write_text("module {}")
    programs = Counted(Source(model, FIXED), {"default": 1.0, **seconds}, REWRITTEN)
    return programs, build_variants(programs, policy)


def test_the_first_two_that_compile_are_timed_and_the_others_left_out(tmp_path: Path) -> None:
    policy = Prophet(CONTIGUOUS, PACKED, "O3", ratios={CONTIGUOUS: 1.1, LAYOUT: 0.5})
    programs, found = built(policy, tmp_path, **{CONTIGUOUS: 0.9, "O3": 1.1})
    assert programs.compiled == ["default", CONTIGUOUS, "O3"]
    assert programs.timed == [("default", CONTIGUOUS, "O3")]
    others = dict.fromkeys(ALL - {PACKED, CONTIGUOUS, "O3", LAYOUT}, NOT_FORESEEN)
    assert found.left_out == {PACKED: "it does not compile", LAYOUT: FORESEEN_BEHIND, **others}
    assert found.foreseen == Foreseen(policy.order, policy.ratios, 9)
    assert found.failed == (PACKED,)
    assert (found.dominant, policy.spoken_for) == ((), CONTIGUOUS)


class Wrong(Counted):
    """Programs of which one computes other results when it is timed."""

    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        timed, failed = super().time(built)
        wrong = [each.variant.name for each in timed if each.variant.name == CONTIGUOUS]
        timed = tuple(replace(each, timing=None) if each.variant.name in wrong else each for each in timed)
        return timed, failed | dict.fromkeys(wrong, "wrong result")


def test_what_computes_other_results_has_failed_too(tmp_path: Path) -> None:
    programs = Wrong(Source(tmp_path, FIXED), dict.fromkeys(("default", CONTIGUOUS, "O3"), 1.0), REWRITTEN)
    found = build_variants(programs, Prophet(CONTIGUOUS, PACKED, "O3", ratios={}))
    assert found.failed == (PACKED, CONTIGUOUS)


def test_a_refinement_takes_the_place_that_is_predicted_of_what_it_refines(tmp_path: Path) -> None:
    _, found = built(Prophet(REFINED, ratios={REFINED: 4.0}), tmp_path, **{REFINED: 5.0})
    assert [each.variant.name for each in found.built] == ["default", REFINED]
    assert found.dominant == (LAYOUT,)
    _, found = built(Prophet(REFINED, ratios={REFINED: 1.5}), tmp_path, **{REFINED: 5.0})
    assert found.dominant == ()


def test_what_an_earlier_run_chose_comes_first(tmp_path: Path) -> None:
    programs, _ = built(
        Prophet(CONTIGUOUS, "O3", ratios={}, chosen=PACKED), tmp_path, **dict.fromkeys([CONTIGUOUS, "O3", PACKED], 0.9)
    )
    assert programs.compiled == ["default", PACKED, CONTIGUOUS]


@pytest.mark.parametrize("trusts", [True, False])
def test_what_an_earlier_run_chose_dominates_where_there_is_no_search_to_compare_it(
    trusts: bool, tmp_path: Path
) -> None:
    policy = Prophet(PACKED, ratios={}, chosen=CONTIGUOUS)
    policy.trusts_earlier_runs = trusts
    _, found = built(policy, tmp_path, **{CONTIGUOUS: 0.9, PACKED: 5.0})
    assert found.dominant == ((CONTIGUOUS,) if trusts else ())


def test_the_default_may_be_all(tmp_path: Path) -> None:
    programs, found = built(Prophet(ratios=dict.fromkeys(ALL, 0.5)), tmp_path)
    assert programs.compiled == ["default"]
    assert programs.timed == [("default",)]
    assert found.left_out == dict.fromkeys(ALL, FORESEEN_BEHIND)


@pytest.mark.parametrize("foresees", [True, False])
def test_without_a_prediction_all_variants_are_compiled(foresees: bool, tmp_path: Path) -> None:
    class Silent(CompilePolicy):
        @property
        def foresees(self) -> bool:
            return foresees

    _, found = built(Silent(), tmp_path, **dict.fromkeys(ALL, 0.9))
    assert {each.variant.name for each in found.built} == {"default", *ALL}
    assert found.foreseen is None
