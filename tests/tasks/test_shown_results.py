"""A program returns results of its dispatches beside its own: which ones, and what they depend on."""

from __future__ import annotations

from pathlib import Path

import iree.runtime as rt
import iree_cases as cases
import numpy as np
import pytest
from kept_workers import KeptWorkers
from rewriting import write

from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.tasks.shown import ShownProgram

pytestmark = pytest.mark.promise

FLAGS = (*cases.FLAGS, *TASK_FLAGS)
SHOWING = "mlir_sched.tasks.worker.showing:shown_program"
ALL = 2**20
PRODUCT = "main_dispatch_0_matmul_8x16x16_f32"
JOINED = """
func.func @main(%a: tensor<8x16xf32>, %b: tensor<16x16xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %first = arith.constant 0 : index
  %one = arith.constant 1 : index
  %three = arith.constant 3 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %l = scf.for %i = %first to %three step %one iter_args(%s = %a) -> (tensor<8x16xf32>) {
    %p = linalg.matmul ins(%s, %b : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>)
      -> tensor<8x16xf32>
    scf.yield %p : tensor<8x16xf32>
  }
  %m = linalg.matmul ins(%l, %b : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>) -> tensor<8x16xf32>
  %r = tensor.concat dim(1) %m, %a : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x32xf32>
  return %r : tensor<8x32xf32>
}
"""
"""A loop of products, one more product, and a tensor that two dispatches write into."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path, JOINED)


def shown(workers: KeptWorkers, path: Path, most_bytes: int = ALL, hidden: tuple[str, ...] = ()) -> ShownProgram:
    found: ShownProgram = workers.run(FLAGS, SHOWING, str(path), ("main",), most_bytes, hidden)
    return found


def test_loops_are_shown_as_a_whole_and_no_tensor_that_is_written_on(kept_workers: KeptWorkers, path: Path) -> None:
    function = shown(kept_workers, path).functions["main"]
    assert [result.maker for result in function.results[:2]] == ["scf.for", PRODUCT]
    assert [result.spec.shape for result in function.results] == [(8, 16), (8, 16), (8, 32)]
    assert len(function.behind) == 3, "both copies and the product"


def test_the_last_results_are_shown_where_memory_is_short(kept_workers: KeptWorkers, path: Path) -> None:
    function = shown(kept_workers, path, most_bytes=4 * (8 * 32 + 8 * 16)).functions["main"]
    assert [result.spec.shape for result in function.results] == [(8, 16), (8, 32)]
    assert PRODUCT in function.behind
    assert not shown(kept_workers, path, hidden=("f32",)).functions["main"].results


def test_what_is_shown_is_what_dispatches_compute(kept_workers: KeptWorkers, path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((8, 16), (16, 16)))
    module = rt.load_vm_flatbuffer(shown(kept_workers, path).vmfb, driver="local-sync")
    own, loop, product, joined = (np.asarray(array) for array in module.main(a, b))
    np.testing.assert_allclose(loop, a @ b @ b @ b, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(product, loop @ b, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(joined, own)
    np.testing.assert_array_equal(joined, np.concatenate([product, a], axis=1))


def test_a_program_from_torch_shows_results_of_the_function_that_it_calls(
    kept_workers: KeptWorkers, tmp_path: Path
) -> None:
    a, b = np.ones((4, 8), np.float32), np.full((8, 16), 2.0, np.float32)
    program = shown(kept_workers, write(tmp_path, cases.TORCH))
    assert [result.maker for result in program.functions["main"].results] == ["main$async_dispatch_0_matmul_4x16x8_f32"]
    module = rt.load_vm_flatbuffer(program.vmfb, driver="local-sync")
    for array in module.main(a, b):
        np.testing.assert_array_equal(np.asarray(array), np.full((4, 16), 16.0))
