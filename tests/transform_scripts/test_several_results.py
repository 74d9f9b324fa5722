"""The llvm-cpu module for dispatches that store the results of several ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from payload_text import Payload
from several_results_payloads import SEVERAL_RESULTS, sum_and_norm, sum_and_squares

from mlir_sched.payload import Dispatch, OpKind
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts.matchers import several_results

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]


def dispatch_of(task: Task) -> Dispatch:
    assert task.dispatch is not None
    return task.dispatch


def test_golden_script(space_for: SpaceFor, golden: Callable[[str, str], None]) -> None:
    space = space_for(SEVERAL_RESULTS["sum_and_norm"])
    values = {
        "workgroup_0": (4,),
        "columns_1": (64,),
        "rows_1": (2,),
        "rows_2": (4,),
        "lanes_2": (32,),
        "columns_3": (128,),
        "rows_3": (1,),
    }
    script = space.script(space.run("several_results", Recorder(values, on_illegal=OnIllegal.REJECT))[0])
    golden("several_results", script)


def test_only_loops_that_divide_every_result_are_distributed(task_for: TaskFor) -> None:
    dispatch = dispatch_of(task_for(sum_and_squares(64, 96)))
    found = several_results(dispatch.root, dispatch)
    assert found is not None
    assert [loop.extent for loop in found.parallel] == [64]
    assert found.between == ()


def test_a_result_of_the_type_of_a_later_one_takes_space_on_the_stack(task_for: TaskFor) -> None:
    dispatch = dispatch_of(task_for(sum_and_norm(24, 128)))
    found = several_results(dispatch.root, dispatch)
    assert found is not None
    assert [op.kind for op in (*found.between, *found.copied)] == [OpKind.REDUCTION, OpKind.ELEMENTWISE]


def test_ops_that_the_last_one_does_not_read_are_left_alone(task_for: TaskFor) -> None:
    dispatch = dispatch_of(task_for(sum_and_squares(64, 96)))
    fill, sums, squares = dispatch.ops
    loaded = replace(squares.inputs[0], producer=None)
    apart = Dispatch((fill, sums, replace(squares, inputs=(loaded,))), dispatch.results)
    assert several_results(apart.root, apart) is None


def test_a_fill_of_two_results_is_left_alone(task_for: TaskFor) -> None:
    """Only one of them would take it into its workgroups; the other would be filled by every workgroup."""
    dispatch = dispatch_of(task_for(sum_and_squares(64, 96)))
    fill, sums, squares = dispatch.ops
    filled = replace(sums, outputs=(replace(sums.outputs[0], producer=fill.index),))
    shared = Dispatch((fill, filled, squares), dispatch.results)
    assert several_results(shared.root, shared) is None


def test_a_dispatch_of_one_result_is_left_alone(task_for: TaskFor) -> None:
    dispatch = dispatch_of(task_for(sum_and_squares(64, 96)))
    single = replace(dispatch, results=dispatch.results[-1:])
    assert several_results(single.root, single) is None
    assert several_results(dispatch.ops[1], dispatch) is None


@pytest.mark.parametrize("name", ["sum_and_squares", "matmul_and_relu"])
def test_dispatches_with_several_results_have_sketches(name: str, space_for: SpaceFor) -> None:
    assert list(space_for(SEVERAL_RESULTS[name]).sketches) == ["several_results"]
