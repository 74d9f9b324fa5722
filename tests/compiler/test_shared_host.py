"""A candidate's program: a host that was compiled once for its task, and a binary without what it does not call."""

from __future__ import annotations

from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.linker import linker_flags
from mlir_sched.tasks.task import Task

REMAINDER = """
func.func @remainder(%a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
      iterator_types = ["parallel"]} ins(%a, %b : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%x: f32, %y: f32, %out: f32):
    %z = arith.remf %x, %y : f32
    linalg.yield %z : f32
  } -> tensor<64xf32>
  return %r : tensor<64xf32>
}
"""
"""LLVM makes a call of ``fmodf`` of a remainder, while it selects instructions."""
SOFTMAX = """
func.func @softmax(%a: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %e = tensor.empty() : tensor<16x32xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<16x32xf32>) outs(%e : tensor<16x32xf32>) -> tensor<16x32xf32>
  return %r : tensor<16x32xf32>
}
"""
"""Its constants lie beside the code, at distances that are part of the instructions."""
NARROWER = cases.GOOD_SCRIPT.replace("tile_sizes [32, 32]", "tile_sizes [16, 32]")
"""A script with twice as many workgroups."""


WITH_LIBRARIES = "--iree-llvmcpu-keep-linker-artifacts=false"
"""Nothing but what IREE does anyhow; but it speaks of the link, which then stays IREE's own."""


def compiled(
    task: Task, *scripts: str | None, flags: tuple[str, ...] = (), chain_length: int = 0
) -> list[CompileResult]:
    """Compile candidates one after the other in a worker of their own."""
    with CompilerPool((*cases.FLAGS, *flags), workers=1, chain_length=chain_length) as pool:
        found = dict(pool.compile(task.source, scripts))
    return [found[index] for index in range(len(scripts))]


@pytest.mark.promise
@pytest.mark.sweep("landing", keep="remainder")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param(cases.MATMUL, id="matmul"),
        pytest.param(cases.CONV1D, id="conv"),
        pytest.param(SOFTMAX, id="softmax"),
        pytest.param(REMAINDER, id="remainder"),
    ],
)
def test_a_binary_is_the_one_that_iree_links_with_its_libraries(text: str, tmp_path: Path) -> None:
    task = cases.task_of(tmp_path, text)
    (whole,) = compiled(task, None, flags=(WITH_LIBRARIES,))
    assert whole.failure is None
    for result in compiled(task, None, None):
        assert result.binary_hash == whole.binary_hash, result.failure


@pytest.mark.promise
@pytest.mark.parametrize("chain_length", [0, 8], ids=["alone", "with a chain"])
def test_candidates_with_other_numbers_of_workgroups_share_a_host(chain_length: int, tmp_path: Path) -> None:
    task = cases.task_of(tmp_path, cases.MATMUL)
    first, second = compiled(task, cases.GOOD_SCRIPT, NARROWER, chain_length=chain_length)
    (alone,) = compiled(task, NARROWER, chain_length=chain_length)
    assert second.binary_hash == alone.binary_hash != first.binary_hash
    rng = np.random.default_rng(0)
    a, b = (rng.random(spec.shape, dtype=np.float32) for spec in task.inputs)
    for result in (first, second):
        assert result.vmfb is not None, result.failure
        *_, product = cases.run_program(result.vmfb, "task", [a, b], [(64, 64)])
        np.testing.assert_allclose(product, a @ b, rtol=1e-5)


def test_a_user_who_asks_for_another_link_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    (flag,) = linker_flags(cases.FLAGS)
    assert flag.startswith("--iree-llvmcpu-system-linker-path=")
    for asked in ("--iree-llvmcpu-embedded-linker-path=/x", "--iree-llvmcpu-link-embedded=false", WITH_LIBRARIES, flag):
        assert linker_flags((*cases.FLAGS, asked)) == ()
    monkeypatch.setenv("IREE_LLVM_EMBEDDED_LINKER_PATH", "/x")
    assert linker_flags(cases.FLAGS) == ()
