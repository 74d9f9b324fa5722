"""Products whose rows are several loops, as of images: which of them are tiled, and where the others stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

import numpy as np
import pytest
from fixed_targets import FIXED
from payload_text import Payload
from recording_emitter import RecordingEmitter
from rule_ops import contraction, dispatch

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.llvm_cpu.contraction import ContractionTiling, Ways, cache, registers
from mlir_sched.transform_scripts.llvm_cpu.prefetch import next_panel
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop
from mlir_sched.transform_scripts.verbs.draws import MASK, PEEL

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
PLANES, IMAGE, CHANNELS_FIRST = ("khw", "nk", "hwn"), ("hwk", "kn", "hwn"), ("khw", "nk", "nhw")
VALUES: dict[str, Value] = {
    "tail": "divisor",
    "columns": (48, 16),
    "rows": (28, 14),
    "further_rows_0": (7,),
    "cache_order": ("rows", "columns"),
    "reduction_step": (4,),
    "columns_operand": "panel",
}
"""Decisions for the product of an image of 28x28 pixels, plane by plane, and weights whose columns are strided."""


def matched(maps: tuple[str, str, str], **extents: int) -> Contraction:
    payload = dispatch(contraction(extents, maps))
    found = matchers.contraction(payload.ops[1], payload)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("maps", "height", "width", "rows", "further"),
    [
        (PLANES, 14, 14, "w", "h"),
        (PLANES, 28, 14, "w", "h"),
        (PLANES, 28, 3, "h", "w"),
        (IMAGE, 14, 14, "w", "h"),
        (IMAGE, 28, 14, "h", "w"),
    ],
)
def test_rows_are_contiguous_where_they_fill_a_tile_else_the_longest(
    maps: tuple[str, str, str], height: int, width: int, rows: str, further: str
) -> None:
    found = matched(maps, h=height, w=width, n=48, k=16)
    assert found.rows is not None
    assert ["hwnk"[found.position(loop)] for loop in (found.rows, *found.further_rows)] == [rows, further]
    assert found.all_rows == (*found.further_rows, found.rows)
    assert found.outermost == ()


@pytest.mark.parametrize(
    ("maps", "extents", "outermost"),
    [
        (("bmk", "bkn", "bmn"), {"b": 4, "m": 14, "n": 48, "k": 16}, "b"),
        (CHANNELS_FIRST, {"n": 14, "h": 5, "w": 16, "k": 16}, "h"),
    ],
)
def test_loops_of_the_columns_operand_are_no_further_rows(
    maps: tuple[str, str, str], extents: dict[str, int], outermost: str
) -> None:
    found = matched(maps, **extents)
    assert [list(extents)[found.position(loop)] for loop in found.outermost] == [outermost]
    assert found.further_rows == ()


def scheduled(
    values: Mapping[str, Value], program: Callable[[Schedule, Contraction, Ways], None] = registers, width: int = 28
) -> list[str]:
    """Return the tilings and copies of a product of an image, without names of handles."""
    found, emitter = matched(PLANES, h=28, w=width, n=48, k=16), RecordingEmitter()
    recorder = Recorder(values, np.random.default_rng(0), OnIllegal.REJECT)
    program(Schedule(dispatch(found.op), FIXED, recorder, emitter), found, Ways(True, (PEEL, MASK)))
    lines = (line.split(" = ", 1)[-1].split(" ") for line in emitter.lines)
    return [f"{verb} {' '.join(rest[1:])}" for verb, *rest in lines if verb in ("fuse", "tile", "hoist")]


def sizes(*numbers: str) -> str:
    return f"by {list(numbers)}"


CACHE_LOOPS = [sizes("further_rows_0", "0", "0", "0"), sizes("0", "rows", "0", "0"), sizes("0", "0", "columns", "0")]
REGISTER_LOOPS = [sizes("0", "0", "columns", "0"), sizes("1", "0", "0", "0"), sizes("0", "rows", "0", "0")]


def test_columns_pass_outside_of_all_rows_and_one_panel_serves_them() -> None:
    assert scheduled(VALUES) == [
        *(f"fuse {loop}" for loop in (*CACHE_LOOPS, *REGISTER_LOOPS)),
        f"tile {sizes('0', '0', '0', 'reduction_step')}",
        "hoist 1 of h8 out of 3 loops as [1, 0]",
    ]


def test_a_reduction_that_is_blocked_has_the_same_loops_inside() -> None:
    values = VALUES | {"reduction": (8, 4), "cache_order": ("reduction", "rows", "columns")}
    del values["reduction_step"]
    made = scheduled(values, cache)
    reduction = f"tile {sizes('0', '0', '0', 'reduction')}"
    first = made.index(reduction)
    assert made[first : first + 8] == [
        reduction,
        *(f"tile {loop}" for loop in (*CACHE_LOOPS, *REGISTER_LOOPS)),
        reduction,
    ]


@pytest.mark.parametrize(
    ("rows", "further", "loops"), [((28, 14), 7, 3), ((28, 14), 1, 2), ((14, 14), 7, 2), ((28, 7), 28, 3)]
)
def test_a_panel_is_in_front_of_the_loops_that_run(rows: tuple[int, int], further: int, loops: int) -> None:
    made = scheduled(VALUES | {"rows": rows, "further_rows_0": (further,)})
    assert f"out of {loops} loops" in made[-1]


def test_without_a_loop_over_rows_there_is_no_panel() -> None:
    values = VALUES | {"rows": (14, 14), "further_rows_0": (1,)}
    del values["columns_operand"]
    assert not any("hoist" in line for line in scheduled(values))


@pytest.mark.parametrize(("further", "loops"), [(7, ["out of 3 loops", "out of 2 loops"]), (1, ["out of 2 loops"])])
def test_rows_that_tiles_leave_over_have_a_panel_where_they_come_again(further: int, loops: list[str]) -> None:
    peeled: dict[str, Value] = {"tail": "peel", "columns": (48,), "register_columns": 32, "register_rows": 8}
    made = scheduled(VALUES | peeled | {"rows": (28,), "further_rows_0": (further,)})
    assert [" ".join(line.split(" ")[4:8]) for line in made if line.startswith("hoist")] == loops


def test_rows_that_fit_a_register_tile_have_no_other_tiles() -> None:
    found = matched(PLANES, h=28, w=14, n=48, k=16)
    loops = ContractionTiling().parallel(found, dispatch(found.op))
    assert [loop.name for loop in loops] == ["0", "2"]
    values = VALUES | {"rows": (14,)}
    made = scheduled(values, width=14)
    assert [line for line in made if "rows'" in line] == [f"fuse {REGISTER_LOOPS[-1]}"]


def test_rows_that_fit_a_register_tile_are_divided_into_tiles_of_about_a_size() -> None:
    found, drawn = matched(PLANES, h=28, w=14, n=52, k=16), set[int]()
    for seed in range(100):
        recorder = Recorder({"tail": "peel"}, np.random.default_rng(seed))
        s = Schedule(dispatch(found.op), FIXED, recorder)
        with suppress(IllegalTraceError):
            registers(s, found, Ways(True, (PEEL, MASK)))
            drawn.add(int(s.tile_of(found.op)[1]))
    assert drawn == {1, 2, 3, 4, 5, 7, 14}


def test_no_panel_is_fetched_ahead_while_further_rows_pass() -> None:
    found = matched(IMAGE, h=14, w=16, n=256, k=128)
    further, rows = found.all_rows

    def fetched(*order: Loop) -> bool:
        s = Schedule(dispatch(found.op), FIXED, Recorder(rng=np.random.default_rng(0)))
        s.tile(found.op, {further: 1, found.columns: 32, rows: 8}, order=order)
        s.tile(found.op, {found.reduction: 4})
        return next_panel(s, found) is not None

    assert fetched(further, found.columns, rows)
    assert not fetched(found.columns, further, rows)


@pytest.mark.landing
@pytest.mark.parametrize("sketch", ["contraction.registers", "contraction.cache"])
def test_candidates_of_every_tail_are_right(space_for: SpaceFor, task_for: TaskFor, sketch: str) -> None:
    name = "product_of_images"
    space, task, rng = space_for(name), task_for(name), np.random.default_rng(5)
    drawn = [space.sample(rng, sketch) for _ in range(120)]
    found = {(t.values.get("tail"), t.values.get("columns_operand"), t.values["further_rows_0"]): t for t in drawn}
    ways = {("divisor", "panel"), ("peel", "panel"), ("peel", "in_place"), ("mask", None)}
    assert {way[:2] for way in found} >= ways
    traces = list(found.values())
    with Runner(RunnerOptions()) as runner, CompilerPool(task.flags) as pool:
        assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)
