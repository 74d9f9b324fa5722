"""The parts of a program that have a choice of algorithms in a variant."""

from __future__ import annotations

import pytest

from mlir_sched.errors import IllegalTraceError
from mlir_sched.library.parts import (
    DECOMPOSED,
    DIRECT,
    FUSED,
    WINOGRAD,
    algorithms_of,
    attention_part,
    attentions_in,
    convolutions_in,
    parts_of,
)
from mlir_sched.program.program_space import VARIANT, ProgramSpace, other_algorithms_in

CONVOLUTION, ATTENTION = "56x56x64x64", attention_part("4096x64x32")
PARTS = (CONVOLUTION, ATTENTION)
BOTH = "channels_last+decomposed_attention+packed_weights"


def test_parts_are_told_apart_by_their_names() -> None:
    assert convolutions_in(PARTS) == [CONVOLUTION]
    assert attentions_in(PARTS) == ["4096x64x32"]
    assert algorithms_of(CONVOLUTION) == (DIRECT, WINOGRAD)
    assert algorithms_of(ATTENTION) == (DECOMPOSED, FUSED)


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        ("default", ()),
        ("packed_weights", ()),
        ("channels_last+packed_weights", (CONVOLUTION,)),
        ("decomposed_attention", (ATTENTION,)),
        (BOTH, PARTS),
    ],
)
def test_a_variant_has_a_choice_where_its_rewrites_make_one(variant: str, expected: tuple[str, ...]) -> None:
    assert parts_of(variant, PARTS) == expected


def test_the_trace_of_a_program_has_the_choices_of_its_variant() -> None:
    space = ProgramSpace(("default", "decomposed_attention", BOTH), PARTS)
    one = space.trace({VARIANT: "decomposed_attention", f"algorithm {ATTENTION}": FUSED})
    assert one.values == {VARIANT: "decomposed_attention", f"algorithm {ATTENTION}": FUSED}
    assert other_algorithms_in(one.values) == (ATTENTION,)
    assert other_algorithms_in(space.trace({VARIANT: BOTH}).values) == ()
    with pytest.raises(IllegalTraceError):
        space.trace({VARIANT: "decomposed_attention", f"algorithm {CONVOLUTION}": WINOGRAD})
    with pytest.raises(IllegalTraceError):
        space.trace({VARIANT: BOTH, f"algorithm {ATTENTION}": WINOGRAD})
