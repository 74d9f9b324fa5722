"""The modules on ROCm: which sketches a dispatch gets, and that candidates become code objects without spills."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from code_objects import metadata_number
from contraction_payloads import matmul
from fixed_targets import FIXED_ROCM, space_of
from payload_text import Payload
from payloads import row_sum

from mlir_sched.compiler import CompilerPool
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder

TaskFor = Callable[[str | Payload], Task]
CONTRACTIONS = ("matmul", "matmul_uneven", "matmul_f16", "matmul_i8", "batch_matmul_bt", "vecmat", "bias_gelu")
OTHERS = ("elementwise_chain", "transpose", "vector_add_uneven", "row_sum", "softmax", "layernorm", "scale_rows")
SAMPLES = 2


@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("name", [*CONTRACTIONS, *OTHERS])
def test_random_candidates_become_code_objects(rocm_task_for: TaskFor, rocm_pool: CompilerPool, name: str) -> None:
    task, rng = rocm_task_for(name), np.random.default_rng(3)
    space = space_of(task, FIXED_ROCM)
    assert space.sketches
    traces = [space.sample(rng, sketch) for sketch in space.sketches for _ in range(SAMPLES)]
    for index, result in rocm_pool.compile(task.source, [space.script(trace) for trace in traces]):
        assert metadata_number(result, "vgpr_spill_count") == 0, traces[index].values


def test_accumulators_are_registers(rocm_task_for: TaskFor, rocm_pool: CompilerPool) -> None:
    task = rocm_task_for(matmul(256, 256, 256))
    space, registers = space_of(task, FIXED_ROCM), []
    for m, n in ((1, 4), (8, 8)):
        values: dict[str, Value] = {"tile_0": (8 * m, m), "tile_1": (8 * n, n), "reduction_step": (4,)}
        trace = space.run("contraction.threads", Recorder(values, on_illegal=OnIllegal.REJECT))[0]
        ((_, result),) = rocm_pool.compile(task.source, [space.script(trace)])
        assert metadata_number(result, "vgpr_spill_count") == 0
        registers.append(metadata_number(result, "vgpr_count"))
    assert registers[1] - registers[0] >= 8 * 8 - 1 * 4


def test_rows_of_shared_tiles_are_padded(rocm_task_for: TaskFor, rocm_pool: CompilerPool) -> None:
    task = rocm_task_for(matmul(256, 256, 256))
    space, rng = space_of(task, FIXED_ROCM), np.random.default_rng(0)
    trace = next(
        trace
        for trace in (space.sample(rng, "shared_contraction") for _ in range(100))
        if trace.values["bank_conflicts"] == "avoided"
    )
    kept = space.run("shared_contraction", Recorder({**trace.values, "bank_conflicts": "kept"}))[0]
    found = dict(rocm_pool.compile(task.source, [space.script(trace), space.script(kept)]))
    padded, plain = (metadata_number(found[index], "group_segment_fixed_size") for index in (0, 1))
    assert padded > plain > 0


def test_limits_of_a_device_shape_the_space(rocm_task_for: TaskFor) -> None:
    """Rows of 96 elements fill subgroups of 32 threads, not of 64."""
    dispatch = rocm_task_for(row_sum(64, 96)).dispatch
    assert dispatch is not None
    sketches = {}
    for name in ("rocm:gfx942", "rocm:gfx1100"):
        target = absent_target(name)
        sketches[name] = DesignSpace(Space.default(target), dispatch, target).sketches
    assert "subgroup_reduction" not in sketches["rocm:gfx942"]
    assert "subgroup_reduction" in sketches["rocm:gfx1100"]
