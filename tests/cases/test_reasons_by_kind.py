"""Programs of many kinds: which of their dispatches can have scripts, and why the others cannot."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import iree_cases as cases
import pytest

from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.space.space import Space
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import why_unscheduled

pytestmark = pytest.mark.promise

HERE = Path(__file__).parent
SPACE = Space.default(cases.TARGET)
COPIES = "it only copies (IREE turns it into a copy of its own)"
COMPLEX = "it computes with complex<f32>, of which MLIR has no vectors"
FOURIER = "it computes a Fourier transform (iree_linalg_ext.fft), for which there is no transform module"
SORTS = "it sorts (iree_linalg_ext.sort), for which there is no transform module"


@cache
def model_of(name: str) -> Model:
    return extract(HERE / f"{name}.mlir", cases.TARGET, TASK_FLAGS)


def tasks_of(name: str, function: str) -> list[Task]:
    """Return the dispatches of a function of a program of this folder."""
    tasks = [t for t in model_of(name).tasks if t.name.partition("_dispatch_")[0].split("$")[0] == function]
    assert tasks
    return tasks


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(
    ("name", "function", "expected"),
    [
        ("stablehlo", "ranked", {SORTS, COPIES}),
        ("stablehlo", "filtered", {FOURIER, COMPLEX}),
        ("stablehlo", "repeated", set()),
        ("stablehlo", "normed", set()),
        ("stablehlo", "joined", {COPIES}),
        ("linalg", "unpacked", set()),
        ("linalg", "odd", set()),
        ("linalg", "first", set()),
        ("linalg", "configured", set()),
        ("linalg", "scaled", set()),
        ("linalg", "bytes", set()),
        ("torch", "looked_up", set()),
        ("onnx", "resized", set()),
        ("state", "scores", set()),
        ("decode", "token", {"its reduction computes with loop indices"}),
        ("decode", "expert", set()),
    ],
)
def test_what_can_have_no_script_has_its_reason(name: str, function: str, expected: set[str]) -> None:
    unscheduled = [task for task in tasks_of(name, function) if not can_tune(task, SPACE, cases.TARGET)]
    assert {why_unscheduled(task) for task in unscheduled} == expected


def test_layers_that_differ_in_a_scale_are_one_task() -> None:
    assert [task.weight for task in tasks_of("linalg", "scaled")] == [2]


def test_functions_that_change_state_are_named() -> None:
    assert sorted(model_of("state").not_run) == ["clear", "push"]
    assert all("changes the program's state (@next, @ring)" in why for why in model_of("state").not_run.values())


def test_a_loop_that_an_argument_ends_runs_and_is_said() -> None:
    (entry,) = [entry for entry in model_of("stablehlo").entries if entry.name == "repeated"]
    assert entry.integer_ranges[0] == (1, 2)
    assert any("how often a loop runs" in note for note in model_of("stablehlo").notes)


def test_positions_stay_inside_of_tables_of_different_lengths() -> None:
    (entry,) = [entry for entry in model_of("torch").entries if entry.name == "looked_up"]
    assert entry.integer_ranges[:2] == ((0, 699), (0, 19))
