"""The llvm-cpu module for dispatches that store the results of several ops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import rule_ops
from fixed_targets import FIXED
from payload_text import Payload
from recording_emitter import RecordingEmitter
from several_results_payloads import SEVERAL_RESULTS, sum_and_norm, sum_and_squares

from mlir_sched.payload import Dispatch, OpKind
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts.llvm_cpu.several_results import SeveralResultsTiling
from mlir_sched.transform_scripts.matchers import several_results
from mlir_sched.transform_scripts.schedule import Schedule

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


@pytest.mark.parametrize(
    ("maps", "places"),
    [(("km", "nk", "nm"), ["[1, 0, 2]"]), (("nk", "km", "nm"), []), (("mk", "kn", "nm"), ["[1, 0, 2]"])],
)
def test_crossed_loops_of_a_product_change_places(maps: tuple[str, str, str], places: list[str]) -> None:
    product = rule_ops.contraction({"n": 16, "m": 32, "k": 8}, maps)
    payload = rule_ops.dispatch(product, rule_ops.epilogue("f32", ("arith.maximumf",), m=16, n=32))
    payload = replace(payload, results=(1, 2))
    found, emitter = several_results(payload.root, payload), RecordingEmitter()
    assert found is not None
    s = Schedule(payload, FIXED, Recorder({"columns_1": (32,), "rows_1": (4,)}, np.random.default_rng(0)), emitter)
    SeveralResultsTiling().schedule(s, found)
    assert [line.split(" to ")[1] for line in emitter.lines if "interchange" in line] == places
