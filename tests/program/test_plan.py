"""Plans as data: their names, their choices of algorithms, and the decisions that lead to them."""

from __future__ import annotations

import pytest
from plans import convolution_sites

from mlir_sched.errors import IllegalTraceError
from mlir_sched.program.plan import Flags, Plan, Site
from mlir_sched.program.program_space import VARIANT, ProgramSpace, decision
from mlir_sched.program.rewrites.attention.decomposed import Attentions, DecomposedAttention
from mlir_sched.program.rewrites.convolution.winograd import Winograd
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.padding.fused import FusedPadding
from mlir_sched.program.rewrites.products.packed import PackedWeights

(CONVOLUTION,), ATTENTION = convolution_sites("56x56x64x64"), Site(Attentions(), "4096x64x32")
SITES = CONVOLUTION, ATTENTION
LAYOUT, DECOMPOSED = Plan((ChannelsLast(),)), Plan((DecomposedAttention(),))
PACKED = Plan((ChannelsLast(), PackedWeights()))
BOTH = Plan((ChannelsLast(), DecomposedAttention(), PackedWeights()))


@pytest.mark.parametrize(
    ("plan", "name"),
    [
        (Plan(), "default"),
        (Plan(own_flags=Flags("O3", ("-O3",))).in_calling_thread(), "O3 on local-sync"),
        (PACKED, "channels_last+packed_weights"),
        (PACKED.with_algorithms([CONVOLUTION]), "channels_last+winograd(56x56x64x64)+packed_weights"),
        (
            BOTH.with_algorithms(SITES),
            "channels_last+winograd(56x56x64x64)+decomposed_attention+fused_attention(4096x64x32)+packed_weights",
        ),
    ],
)
def test_the_name_of_a_plan_is_printed_from_its_data(plan: Plan, name: str) -> None:
    assert plan.name == name


def test_rewrites_are_data_with_their_options() -> None:
    assert Plan((ChannelsLast(),)) == LAYOUT
    assert len({Winograd(), Winograd(("8x8x32x32",)), Winograd(("8x8x32x32",))}) == 2
    assert LAYOUT.steps == LAYOUT.rewrites


@pytest.mark.parametrize(
    ("plan", "refines"),
    [
        (Plan(), ""),
        (LAYOUT, ""),
        (Plan((PackedWeights(),)), "default"),
        (BOTH, "channels_last"),
        (LAYOUT.with_algorithms([CONVOLUTION]), ""),
        (PACKED.with_algorithms([CONVOLUTION]).in_calling_thread(), "channels_last"),
    ],
)
def test_a_plan_whose_last_rewrite_needs_scripts_refines_its_first(plan: Plan, refines: str) -> None:
    assert plan.refines == refines


def test_a_refinement_extends_those_with_some_of_its_rewrites() -> None:
    most = Plan((*BOTH.rewrites, FusedPadding()))
    plans = [PACKED, BOTH, most, LAYOUT]
    assert [(a.name, b.name) for a in plans for b in plans if a.extends(b)] == [
        (BOTH.name, PACKED.name),
        (most.name, PACKED.name),
        (most.name, BOTH.name),
    ]


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (Plan(), []),
        (Plan((PackedWeights(),)), []),
        (PACKED, [CONVOLUTION]),
        (DECOMPOSED, [ATTENTION]),
        (BOTH, [CONVOLUTION, ATTENTION]),
    ],
)
def test_a_site_has_a_choice_where_rewrites_make_one(plan: Plan, expected: list[Site]) -> None:
    assert [site for site in SITES if plan.has_choice(site)] == expected


def test_the_trace_of_a_program_has_the_choices_of_its_plan() -> None:
    space, fused = ProgramSpace((Plan(), DECOMPOSED, BOTH), SITES), decision(ATTENTION)
    assert fused == "algorithm attention 4096x64x32"
    one = space.trace({VARIANT: "decomposed_attention", fused: "fused"})
    assert one.values == {VARIANT: "decomposed_attention", fused: "fused"}
    assert one == space.trace_of(DECOMPOSED.with_algorithms([ATTENTION]))
    with pytest.raises(IllegalTraceError):
        space.trace({VARIANT: "decomposed_attention", decision(CONVOLUTION): "winograd"})
    with pytest.raises(IllegalTraceError):
        space.trace({VARIANT: BOTH.name, fused: "winograd"})


def test_decisions_lead_to_the_plan_that_they_were_made_of() -> None:
    space = ProgramSpace((Plan(), DECOMPOSED, BOTH), SITES)
    for plan in (Plan(), BOTH, BOTH.with_algorithms(SITES), DECOMPOSED.with_algorithms([ATTENTION])):
        assert space.decided(space.trace_of(plan).values) == plan
    assert space.decided({VARIANT: "a rewrite of another version"}) is None
    beside = {VARIANT: DECOMPOSED.name, decision(CONVOLUTION): "winograd", "algorithm 9x9x64x64": "winograd"}
    assert space.decided(beside) == DECOMPOSED, "it has no such choices"
