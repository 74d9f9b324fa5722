"""Threads that write the same places of workgroup memory are found, in code and in the scripts that make such code."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from fixed_targets import FIXED_VULKAN
from iree.compiler import ir

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.operations import first_function
from mlir_sched.compiler.worker.gpu_threads import why_threads_collide
from mlir_sched.errors import FailureClass
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.tasks.task import Task

TILE = "memref<8x4xf32, #gpu.address_space<workgroup>>"
VIEW = "memref<1x4xf32, strided<[4, 1], offset: ?>, #gpu.address_space<workgroup>>"
PRIVATE = f"memref.store %v, %tile[%c0, %c0] : {TILE}"
ONE_DIMENSION = f"memref.store %v, %tile[%x, %c0] : {TILE}"
BOTH = f"memref.store %v, %tile[%x, %y] : {TILE}"
COMPUTED = f"""%sum = arith.addi %x, %y : index
  memref.store %v, %tile[%sum, %c0] : {TILE}"""
LOOP = f"""scf.for %i = %x to %c4 step %c4 {{
    memref.store %v, %tile[%i, %y] : {TILE}
  }}"""
SINGLE_THREAD = f"""%sum = arith.addi %x, %y : index
  %first = arith.cmpi eq, %sum, %c0 : index
  scf.if %first {{
    memref.store %v, %tile[%c0, %c0] : {TILE}
  }}"""
VIEWED = f"""%view = memref.subview %tile[%x, 0] [1, 4] [1, 1] : {TILE} to {VIEW}
  memref.store %v, %view[%c0, %y] : {VIEW}"""
PRIVATE_VIEW = f"""%view = memref.subview %tile[%c4, 0] [1, 4] [1, 1] : {TILE} to {VIEW}
  memref.store %v, %view[%c0, %c0] : {VIEW}"""
VALUE_ONLY = f"""%bits = arith.index_cast %x : index to i32
  %own = arith.sitofp %bits : i32 to f32
  memref.store %own, %tile[%c0, %y] : {TILE}"""
READ = f"%r = memref.load %tile[%c0, %c0] : {TILE}"


def complaint(body: str, size: str = "8, 4, 1") -> str:
    info = f"#iree_codegen.translation_info<pipeline = #iree_codegen.no_pipeline workgroup_size = [{size}]>"
    text = f"""func.func @f(%v: f32) attributes {{translation_info = {info}}} {{
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %x = gpu.thread_id x
  %y = gpu.thread_id y
  %tile = memref.alloc() : {TILE}
  {body}
  return
}}"""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        return why_threads_collide(first_function(module.operation))


@pytest.mark.parametrize("body", [BOTH, COMPUTED, LOOP, SINGLE_THREAD, VIEWED, READ])
def test_a_place_per_thread_is_legal(body: str) -> None:
    assert complaint(body) == ""


@pytest.mark.parametrize(
    ("body", "along"),
    [(PRIVATE, "x, y"), (PRIVATE_VIEW, "x, y"), (ONE_DIMENSION, "y"), (VALUE_ONLY, "x")],
    ids=["a private temporary", "a view of one", "one dimension only", "the stored value tells no place"],
)
def test_the_same_place_is_found(body: str, along: str) -> None:
    found = complaint(body)
    assert found.startswith("32 threads write the same places of a workgroup buffer: memref.store into memref<")
    assert found.endswith(f" along {along}")


def test_a_dimension_of_one_thread_needs_no_place() -> None:
    assert complaint(ONE_DIMENSION, "8, 1, 1") == ""
    assert complaint(PRIVATE, "1, 1, 1") == ""


def test_a_script_whose_threads_all_copy_the_same_is_a_data_race(vulkan_task_for: Callable[[str], Task]) -> None:
    """IREE compiles the script; only the check keeps the candidate from being run."""
    task = vulkan_task_for("matmul")
    assert task.dispatch is not None
    space = DesignSpace(Space.default(FIXED_VULKAN), task.dispatch, FIXED_VULKAN)
    script = space.script(space.sample(np.random.default_rng(1), "shared_contraction"))
    planted = "".join(line for line in script.splitlines(True) if "gpu_distribute_shared_memory_copy" not in line)
    assert planted != script
    with CompilerPool(task.flags, workers=1) as pool:
        results = dict(pool.compile(task.source, [script, planted]))
    assert results[0].failure is None
    failure = results[1].failure
    assert failure is not None
    assert failure.kind is FailureClass.DATA_RACE
    assert "threads write the same places of a workgroup buffer" in failure.message
