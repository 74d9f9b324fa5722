"""A library whose sequences are taken out, put back, edited, and judged."""

from collections.abc import Callable

import numpy as np
import pytest

from mlir_sched.errors import ScriptError
from mlir_sched.library.library import TunedSequence, build_library, provenance_of
from mlir_sched.replaying.script_state import ScriptState, judge
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.script.reading import extract_sequence, parse_traces, replace_sequence, sequence_text

SpaceFor = Callable[[str], DesignSpace]
TaskFor = Callable[[str], Task]
SYMBOLS = ("tuned_0", "tuned_1")


@pytest.fixture
def space(space_for: SpaceFor) -> DesignSpace:
    return space_for("matmul")


@pytest.fixture
def traces(space: DesignSpace, space_for: SpaceFor) -> tuple[Trace, Trace]:
    """A trace of a matmul with two cache loops, whose order can be chosen, and one of a layernorm."""
    rng = np.random.default_rng(3)
    while True:
        trace = space.sample(rng, "contraction.cache")
        order = trace.values["cache_order"]
        if isinstance(order, tuple) and len(order) > 1:
            return trace, space_for("layernorm").sample(rng)


@pytest.fixture
def library(space_for: SpaceFor, traces: tuple[Trace, Trace], task_for: TaskFor) -> str:
    return build_library(
        [
            TunedSequence(symbol, task_for(name).source, space_for(name), trace, {"seed": "7"})
            for symbol, name, trace in zip(SYMBOLS, ("matmul", "layernorm"), traces, strict=True)
        ]
    )


def test_a_sequence_that_is_taken_out_is_the_script_of_its_trace(
    space: DesignSpace, space_for: SpaceFor, traces: tuple[Trace, Trace], library: str
) -> None:
    for symbol, origin, trace in zip(SYMBOLS, (space, space_for("layernorm")), traces, strict=True):
        script = extract_sequence(library, symbol)
        assert parse_traces(script) == {"strategy": trace}
        assert sequence_text(script) == sequence_text(origin.script(trace, symbol)) == sequence_text(library, symbol)


def test_a_sequence_that_is_put_in_replaces_one_and_leaves_the_rest(
    space: DesignSpace, traces: tuple[Trace, Trace], library: str
) -> None:
    other = space.sample(np.random.default_rng(9), "contraction.registers")
    changed = replace_sequence(library, SYMBOLS[0], space.script(other, SYMBOLS[0]))
    assert sequence_text(changed, SYMBOLS[1]) == sequence_text(library, SYMBOLS[1])
    assert provenance_of(changed)[SYMBOLS[0]]["seed"] == "7"
    back = replace_sequence(changed, SYMBOLS[0], space.script(traces[0], SYMBOLS[0]))
    assert parse_traces(back) == parse_traces(library)
    assert "@__kernel_config" in back


def test_an_unknown_sequence_is_refused(library: str) -> None:
    with pytest.raises(ScriptError, match="no sequence @tuned_9"):
        extract_sequence(library, "tuned_9")


def test_a_script_is_as_tuned_until_it_is_edited(space: DesignSpace, traces: tuple[Trace, Trace], library: str) -> None:
    judgement = judge(library, SYMBOLS[0], traces[0], space, traces[0].values)
    assert (judgement.state, judgement.note, judgement.script) == (ScriptState.AS_TUNED, "", "")


def test_an_edited_order_is_honoured_and_the_loops_follow_it(
    space: DesignSpace, traces: tuple[Trace, Trace], library: str
) -> None:
    order = traces[0].values["cache_order"]
    assert isinstance(order, tuple)
    old, new = (str(list(items)).replace("'", '"') for items in (order, order[::-1]))
    edited = library.replace(
        f"constant {old} {{mlir_sched.distribution", f"constant {new} {{mlir_sched.distribution", 1
    )
    found = parse_traces(edited)[SYMBOLS[0]]
    assert found.values == {**traces[0].values, "cache_order": order[::-1]}
    judgement = judge(edited, SYMBOLS[0], found, space, traces[0].values)
    assert judgement.state is ScriptState.EDITED
    assert "cache_order" in judgement.note
    regenerated = replace_sequence(edited, SYMBOLS[0], judgement.script) if judgement.script else edited
    assert sequence_text(regenerated, SYMBOLS[0]) == sequence_text(space.script(found, SYMBOLS[0]))


def test_other_edits_and_unknown_origins_make_it_hand_written(
    space: DesignSpace, traces: tuple[Trace, Trace], library: str
) -> None:
    edited = library.replace("    transform.apply_cse to %arg0 : !transform.any_op\n", "", 1)
    assert edited != library
    for emitted in (traces[0].values, None):
        judgement = judge(edited, SYMBOLS[0], traces[0], space, emitted)
        assert judgement.state is ScriptState.HAND_WRITTEN
    assert judge(library, SYMBOLS[0], traces[0], None, None).state is ScriptState.UNKNOWN


def test_edits_of_numbers_inside_ops_can_be_taken_back(space_for: SpaceFor) -> None:
    space, rng = space_for("layernorm"), np.random.default_rng(0)
    trace = next(t for t in (space.sample(rng) for _ in range(200)) if "lanes_768" in t.values)
    script = space.script(trace)
    lanes = trace.values["lanes_768"]
    assert isinstance(lanes, tuple)
    other = trace.with_value("lanes_768", (16 if lanes[0] != 16 else 32,))
    assert sequence_text(script, values=trace.values) == sequence_text(script)
    assert parse_traces(script)["strategy"] == trace
    assert sequence_text(script, values=other.values) != sequence_text(script)
