"""The script is the trace: what is written is read back, and what is edited by hand is honoured or refused."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
from payloads import PAYLOADS

from mlir_sched.errors import IllegalTraceError, ScriptError
from mlir_sched.replaying.script_state import ScriptState, judge
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.trace import Recorder, Trace
from mlir_sched.transform_scripts.script.reading import parse_traces, sequence_text

SpaceFor = Callable[[str], DesignSpace]


def trace_with(space: DesignSpace, sketch: str, **values: int | str | tuple[int, ...] | tuple[str, ...]) -> Trace:
    """Return a legal trace of a sketch with some decisions given."""
    rng = np.random.default_rng(0)
    for _ in range(500):
        try:
            return space.run(sketch, Recorder(values, rng))[0]
        except IllegalTraceError:
            continue
    raise AssertionError(f"no legal trace of {sketch} has {values}")


@pytest.fixture
def space(space_for: SpaceFor) -> DesignSpace:
    return space_for("matmul")


@pytest.fixture
def trace(space: DesignSpace) -> Trace:
    return trace_with(space, "contraction.registers", rows=(16, 8), columns=(48, 16), reduction_step=(4,))


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", PAYLOADS)
def test_script_reads_back_as_its_trace_and_prints_the_same(space_for: SpaceFor, name: str) -> None:
    space, rng = space_for(name), np.random.default_rng(7)
    for sketch in space.sketches:
        for trace in {space.sample(rng, sketch) for _ in range(12)}:
            script = space.script(trace)
            assert parse_traces(script) == {"strategy": trace}
            assert space.script(space.trace_of(script)) == script


def test_trace_survives_json(space_for: SpaceFor) -> None:
    rng = np.random.default_rng(1)
    for name in ("matmul_100", "layernorm", "transpose"):
        space = space_for(name)
        for trace in (space.sample(rng) for _ in range(20)):
            assert Trace.from_json(trace.to_json()) == trace
            assert space.script(Trace.from_json(trace.to_json())) == space.script(trace)


def constant(script: str, name: str, element: int = 0) -> re.Match[str]:
    """Return the line of the script that holds an element of a decision."""
    pattern = rf'constant (\S+) : i64 \{{[^\n]*mlir_sched.name = "{name}"\}}'
    found = [m for m in re.finditer(pattern, script) if f"mlir_sched.element = {element} :" in m[0] or element == 0]
    return next(m for m in found if (f"element = {element} :" in m[0]) or "mlir_sched.element" not in m[0])


def edited(script: str, name: str, value: int, element: int = 0) -> str:
    """Return the script with one number changed, as by hand."""
    found = constant(script, name, element)
    return script[: found.start(1)] + str(value) + script[found.end(1) :]


def test_edited_number_is_honoured(space: DesignSpace, trace: Trace) -> None:
    script = edited(space.script(trace), "reduction_step", 8)
    changed = space.trace_of(script)
    assert changed.values == {**trace.values, "reduction_step": (8,)}
    assert constant(space.script(changed), "reduction_step")[1] == "8"


def test_edited_number_that_later_supports_depend_on_is_everywhere_in_the_regenerated_script(
    space: DesignSpace,
) -> None:
    trace = trace_with(space, "contraction.registers", workgroup_0=(64,), rows=(16, 8))
    changed = space.trace_of(edited(space.script(trace), "workgroup_0", 32))
    regenerated = space.script(changed)
    assert changed.values["workgroup_0"] == (32,)
    assert "extent = 32" in constant(regenerated, "rows")[0]
    assert space.script(space.trace_of(regenerated)) == regenerated


def test_edited_number_outside_its_support_is_refused(space: DesignSpace, trace: Trace) -> None:
    with pytest.raises(IllegalTraceError, match=r"rows = \(16, 7\) is not in the support of PerfectTile.*choose"):
        space.trace_of(edited(space.script(trace), "rows", 7, element=1))


def test_edited_number_that_breaks_a_rule_is_refused(space: DesignSpace) -> None:
    peeled = trace_with(
        space, "contraction.registers", workgroup_0=(64,), tail="peel", rows=(64,), register_rows=10
    )  # fmt: skip
    with pytest.raises(IllegalTraceError, match="rows: register tile 10 > 8"):
        space.trace_of(edited(space.script(peeled), "rows", 8))


def test_decision_with_two_values_is_refused(space_for: SpaceFor) -> None:
    space = space_for("layernorm")
    script = space.script(trace_with(space, "reduction", rows=(1,), row="parts", lanes_768=(16,)))
    once = script.replace("tile_sizes = [0, 16]", "tile_sizes = [0, 32]", 1)
    assert once != script
    with pytest.raises(ScriptError, match="lanes_768 is 32 in one place and 16 in another; give both one value"):
        space.trace_of(once)
    both = space.trace_of(script.replace("tile_sizes = [0, 16]", "tile_sizes = [0, 32]"))
    assert both.values["lanes_768"] == (32,)


def test_edited_word_is_honoured(space: DesignSpace, trace: Trace) -> None:
    script = space.script(trace)
    order = trace.values["cache_order"]
    assert isinstance(order, tuple)
    swapped = script.replace(_words(order), _words(order[::-1]), 1)
    assert space.trace_of(swapped).values["cache_order"] == order[::-1]


def _words(items: tuple[int, ...] | tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{item}"' for item in items) + "]"


def without(script: str, name: str, attribute: str) -> str:
    """Return the script with an attribute of a decision's constant taken away."""
    line = constant(script, name)[0]
    shorter = re.sub(rf"mlir_sched\.{attribute} = (\{{[^}}]*\}}|\d+ : i64)(, )?", "", line)
    assert shorter != line
    return script.replace(line, shorter)


def test_lost_distribution_is_refused(space: DesignSpace, trace: Trace) -> None:
    with pytest.raises(ScriptError, match=r"reduction_step has lost its mlir_sched\.distribution attribute"):
        space.trace_of(without(space.script(trace), "reduction_step", "distribution"))


def test_lost_element_is_refused(space: DesignSpace, trace: Trace) -> None:
    lines = space.script(trace).splitlines(keepends=True)
    kept = [line for line in lines if not ("element = 0" in line and 'name = "rows"' in line)]
    script = "".join(kept).replace("%rows_0", "%rows_1")
    script = re.sub(r"( *)(%rows_1 = .*\n)", "", script).replace(
        "    %cache_order =", _line(lines, "element = 1", 'name = "rows"') + "    %cache_order =", 1
    )
    with pytest.raises(ScriptError, match="rows has lost"):
        space.trace_of(script)


def _line(lines: list[str], *parts: str) -> str:
    return next(line for line in lines if all(part in line for part in parts))


def test_lost_decision_is_refused(space: DesignSpace, trace: Trace) -> None:
    lines = space.script(trace).splitlines(keepends=True)
    script = "".join(line for line in lines if "%register_order =" not in line)
    with pytest.raises(IllegalTraceError, match="no value is given for 'register_order'"):
        space.trace_of(script)


def test_script_edited_beyond_its_decisions_is_noticed(space: DesignSpace, trace: Trace) -> None:
    own = space.script(trace, "strategy")
    script = own.replace("    transform.apply_cse to %arg0 : !transform.any_op\n", "", 1)
    found = judge(script, "strategy", space.trace_of(script), space, trace.values)
    assert found.state is ScriptState.HAND_WRITTEN
    assert "more than its decisions was changed" in found.note
    assert judge(own, "strategy", space.trace_of(own), space, trace.values).state is ScriptState.AS_TUNED
    number = edited(own, "reduction_step", 8)
    assert judge(number, "strategy", space.trace_of(number), space, trace.values).state is ScriptState.EDITED


def test_an_edit_is_one_wherever_the_script_has_loops_of_one_iteration(space: DesignSpace) -> None:
    trace = trace_with(space, "contraction.registers", workgroup_0=(64,), rows=(64, 8), columns=(48, 16))
    assert trace.values["cache_order"] == ("rows", "columns"), "each has one iteration"
    before = trace.with_value("cache_order", ("columns", "rows"))
    script = space.script(before, "strategy")
    assert judge(script, "strategy", space.trace_of(script), space, before.values).state is ScriptState.AS_TUNED
    (line,) = [each for each in script.splitlines() if 'mlir_sched.name = "register_order"' in each]
    order = before.values["register_order"]
    assert isinstance(order, tuple)
    swapped = script.replace(line, line.replace(_words(order), _words(order[::-1]), 1))
    found = judge(swapped, "strategy", space.trace_of(swapped), space, before.values)
    assert found.state is ScriptState.EDITED
    assert "what follows from it is generated anew" in found.note


def test_layout_comments_and_names_of_values_do_not_matter(space: DesignSpace, trace: Trace) -> None:
    script = space.script(trace).replace("%rows_0", "%mine").replace("    %", "  // a note\n      %")
    assert space.trace_of(script) == trace


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("module {", "does not parse"),
        ("module {}", "no sequence @strategy"),
    ],
)
def test_text_that_is_no_script_is_refused(space: DesignSpace, text: str, complaint: str) -> None:
    with pytest.raises(ScriptError, match=complaint):
        space.trace_of(text)


def test_unknown_sketch_is_refused(space: DesignSpace, trace: Trace) -> None:
    script = space.script(trace).replace('sketch = "contraction.registers"', 'sketch = "contraction.secret"')
    with pytest.raises(IllegalTraceError, match=r"the space has no sketch 'contraction\.secret'; it has "):
        space.trace_of(script)


def test_sequence_text_ignores_provenance_and_symbol(space: DesignSpace, trace: Trace) -> None:
    script = space.script(trace)
    renamed = script.replace("@strategy", "@other").replace(
        "attributes {mlir_sched.sketch", 'attributes {mlir_sched.seed = "1", mlir_sched.sketch'
    )
    assert sequence_text(renamed, "other") == sequence_text(script)
    with pytest.raises(ScriptError, match="no sequence @strategy"):
        sequence_text(renamed)
