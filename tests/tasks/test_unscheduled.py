"""Dispatches with several results: those that have scripts, and why the others have none."""

from __future__ import annotations

from pathlib import Path

import iree_cases as cases
import pytest
from attention_programs import PLAIN
from contraction_payloads import matmul_and_relu
from payload_text import O3, Payload
from payloads import moments, sine_and_cosine

from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.space.space import Space
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.unscheduled import why_unscheduled

pytestmark = pytest.mark.promise

SPACE = Space.default(cases.TARGET)
SCALE = "%scale = arith.constant 0.5 : f32\n  %empty ="
ATTENTION = PLAIN.text().replace(", %scale: f32", "").replace("%empty =", SCALE)
LARGEST = """
!row = !torch.vtensor<[128],f32>
func.func @main(%x: !torch.vtensor<[128,256],f32>) -> (!row, !torch.vtensor<[128],si64>) {
  %along = torch.constant.int 1
  %keep = torch.constant.bool false
  %value, %place = torch.aten.max.dim %x, %along, %keep
    : !torch.vtensor<[128,256],f32>, !torch.int, !torch.bool -> !row, !torch.vtensor<[128],si64>
  return %value, %place : !row, !torch.vtensor<[128],si64>
}
"""


def task_of(program: Payload, folder: Path) -> Task:
    path = folder / "model.mlir"
    path.write_text(program.text)
    (task,) = extract(path, cases.TARGET, program.flags).tasks
    return task


@pytest.mark.parametrize("program", [sine_and_cosine(48, 96), moments(96, 160)], ids=["element-wise", "reduction"])
def test_an_op_with_several_results_has_scripts(program: Payload, tmp_path: Path) -> None:
    task = task_of(program, tmp_path)
    assert len(task.outputs) == 2
    assert can_tune(task, SPACE, cases.TARGET)


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (Payload(LARGEST), "its reduction computes with loop indices"),
        (Payload(ATTENTION), "no transform module schedules dispatches with iree_linalg_ext.online_attention"),
    ],
    ids=["largest and its place", "attention"],
)
def test_why_a_dispatch_has_none(program: Payload, why: str, tmp_path: Path) -> None:
    task = task_of(program, tmp_path)
    assert not can_tune(task, SPACE, cases.TARGET)
    assert why_unscheduled(task) == why


def test_results_that_no_module_stores_together_are_named(tmp_path: Path) -> None:
    task = task_of(matmul_and_relu(64, 48, 80), tmp_path)
    assert can_tune(task, SPACE, cases.TARGET)
    assert why_unscheduled(task) == "it stores the results of 2 ops, which no transform module schedules together"


def test_the_results_of_two_ops_are_two_dispatches_by_default(tmp_path: Path) -> None:
    program = matmul_and_relu(64, 48, 80)
    assert program.flags == O3
    (tmp_path / "model.mlir").write_text(program.text)
    tasks = extract(tmp_path / "model.mlir", cases.TARGET).tasks
    assert [can_tune(task, SPACE, cases.TARGET) for task in tasks] == [True, True]
