"""Which variants have a chance follows from how fast each is predicted to be."""

from __future__ import annotations

import pytest

from mlir_sched.program.plan import Flags, Plan
from mlir_sched.program.rewrites import cpu_rewrites
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.foreseeing import foreseen, worth
from mlir_sched.targets.kind import DATA_TILING

BY_NAME = {plan.name: plan for plan in map(Plan, cpu_rewrites(1))}
PACKED, FUSED = "packed_weights", f"{LAYOUT}+packed_weights+fused_padding"
REFINED = f"{LAYOUT}+packed_weights"
TILING = Plan(own_flags=Flags(DATA_TILING))
PLANS = (TILING, *(BY_NAME[name] for name in (PACKED, LAYOUT, REFINED, FUSED, "contiguous_filters")))


def test_what_refines_a_variant_is_worth_as_much_without_scripts() -> None:
    found = worth({LAYOUT: 3.0, REFINED: 0.2, PACKED: 0.1, DATA_TILING: 1.4}, PLANS)
    assert found == {LAYOUT: 3.0, REFINED: 3.0, PACKED: 1.0, DATA_TILING: 1.4}


def test_what_a_run_ended_with_is_worth_as_much_as_the_best() -> None:
    assert worth({PACKED: 0.1, DATA_TILING: 1.4}, PLANS, PACKED) == {PACKED: 1.4, DATA_TILING: 1.4}
    assert worth({}, PLANS, PACKED) == {}


def test_a_refinement_that_was_compiled_at_once_is_worth_as_much_as_the_program() -> None:
    assert worth({REFINED: 0.2}, PLANS) == {REFINED: 1.0}
    assert worth({REFINED: 2.4}, PLANS) == {REFINED: 2.4}, "some are fast without scripts, too"
    assert worth({LAYOUT: 0.5, REFINED: 0.2}, PLANS) == {LAYOUT: 0.5, REFINED: 0.5}


def test_what_a_run_ended_with_is_worth_as_much_as_the_program() -> None:
    assert worth({LAYOUT: 0.5}, PLANS, LAYOUT) == {LAYOUT: 1.0}


def test_what_fails_is_worth_nothing_whatever_it_refines_and_whoever_chose_it() -> None:
    assert worth({LAYOUT: 3.0, REFINED: 0.0}, PLANS, REFINED) == {LAYOUT: 3.0, REFINED: 0.0}
    assert worth({LAYOUT: 0.0, REFINED: 0.2}, PLANS) == {LAYOUT: 0.0, REFINED: 0.2}


@pytest.mark.parametrize(
    ("ratios", "order"),
    [
        ({LAYOUT: 4.0, REFINED: 4.0, FUSED: 4.0}, (FUSED, LAYOUT, REFINED)),
        ({LAYOUT: 0.5, REFINED: 0.5, FUSED: 0.5, DATA_TILING: 1.24}, (DATA_TILING, PACKED, "contiguous_filters")),
        ({LAYOUT: 0.5, REFINED: 0.5, FUSED: 0.5, DATA_TILING: 0.7, PACKED: 0.9}, ("contiguous_filters", PACKED)),
        (dict.fromkeys([plan.name for plan in PLANS], 0.5), ()),
    ],
)
def test_variants_without_hope_are_left_out_and_the_others_ordered(
    ratios: dict[str, float], order: tuple[str, ...]
) -> None:
    found = foreseen(PLANS, ratios, 9)
    assert found.order[:1] == order[:1]
    assert set(found.order) == set(order)
    assert found.programs == 9
    assert found.ratios == ratios, "what is not predicted has no number"


def test_what_replaces_a_variant_comes_before_it() -> None:
    (first, *others) = foreseen(PLANS, {LAYOUT: 4.1, REFINED: 4.0, FUSED: 4.0}, 9).order
    assert (first, set(others)) == (FUSED, {LAYOUT, REFINED})


def test_behind_the_first_variant_rewrites_come_before_flags() -> None:
    order = foreseen((TILING, BY_NAME[PACKED], BY_NAME["contiguous_filters"]), {DATA_TILING: 1.1, PACKED: 1.2}, 9).order
    assert order == (PACKED, "contiguous_filters", DATA_TILING)
