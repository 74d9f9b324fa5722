"""A candidate's program: a host that was compiled once for its task, and a binary without what it does not call."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.linker import link_command
from mlir_sched.compiler.version import compiler_program
from mlir_sched.compiler.worker import linking
from mlir_sched.errors import CompilerError
from mlir_sched.tasks import extract
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
AARCH64 = (*cases.FLAGS[:2], "--iree-llvmcpu-target-triple=aarch64-linux-gnu", "--iree-llvmcpu-target-cpu=cortex-a76")
"""A processor whose functions have other frames where these are to hold after every instruction."""


WITH_LIBRARIES = "--iree-llvmcpu-keep-linker-artifacts=false"
"""Nothing but what IREE does anyhow; but it speaks of the link, which then stays IREE's own."""


def compiled(
    task: Task, *scripts: str | None, flags: tuple[str, ...] = cases.FLAGS, chain_length: int = 0
) -> list[CompileResult]:
    """Compile candidates one after the other in a worker of their own."""
    with CompilerPool(flags, workers=1, chain_length=chain_length) as pool:
        found = dict(pool.compile(task.source, scripts))
    return [found[index] for index in range(len(scripts))]


@pytest.mark.promise
@pytest.mark.sweep("landing", keep="remainder")
@pytest.mark.parametrize(
    ("text", "flags"),
    [
        pytest.param(cases.MATMUL, cases.FLAGS, id="matmul"),
        pytest.param(cases.CONV1D, cases.FLAGS, id="conv"),
        pytest.param(SOFTMAX, cases.FLAGS, id="softmax"),
        pytest.param(REMAINDER, cases.FLAGS, id="remainder"),
        pytest.param(SOFTMAX, AARCH64, id="softmax-aarch64"),
    ],
)
def test_a_binary_is_the_one_that_iree_links_with_its_libraries(
    text: str, flags: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    (task,) = extract(path, replace(cases.TARGET, flags=flags)).tasks
    (whole,) = compiled(task, None, flags=(*flags, WITH_LIBRARIES))
    assert whole.failure is None
    for result in compiled(task, None, None, flags=flags):
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


@pytest.mark.promise
def test_a_number_of_the_program_stays_where_it_equals_a_placeholder(tmp_path: Path) -> None:
    own = (
        "util.func public @own() -> i32 {\n %number = arith.constant 0x7FFFFF03 : i32\n util.return %number : i32\n}\n"
    )
    source = cases.task_of(tmp_path, cases.MATMUL).source
    head, tail = source.split("util.func public @task", 1)
    with CompilerPool(cases.FLAGS, workers=1) as pool:
        for _, result in pool.compile(f"{head}{own}util.func public @task{tail}", [None, cases.GOOD_SCRIPT]):
            assert result.vmfb is not None, result.failure
            assert number_of(result.vmfb, "own") == 0x7FFFFF03


def number_of(vmfb: bytes, entry: str) -> int:
    """Return what a function of a program returns that takes nothing."""
    import iree.runtime as rt

    instance, results = rt.VmInstance(), rt.VmVariantList(1)
    hal = rt.create_hal_module(instance, rt.get_driver("local-sync").create_default_device())
    module = rt.VmModule.copy_buffer(instance, vmfb)
    context = rt.VmContext(instance, [hal, module])
    context.invoke(module.lookup_function(entry), rt.VmVariantList(0), results)
    return int(results.get_variant(0))


@pytest.mark.promise
def test_a_program_that_names_the_system_linker_by_itself_is_linked_by_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = cases.task_of(tmp_path, cases.MATMUL).source
    of_system = re.sub(r'"embedded-elf-(\w+)", \{', r'"system-elf-\1", {link_embedded = false, ', source)
    users, used = tmp_path / "linker", tmp_path / "used"
    users.write_text(f'#!/bin/sh\ntouch {used}\nexec {compiler_program("iree-lld")} -flavor gnu "$@"\n')
    users.chmod(0o700)
    monkeypatch.setenv("IREE_LLVM_SYSTEM_LINKER_PATH", str(users))
    with CompilerPool(cases.FLAGS, workers=1) as pool:
        for each in (source, of_system):
            ((_, result),) = pool.compile(each, [None])
            assert result.failure is None
            assert used.exists() == (each == of_system)


def test_a_user_who_asks_for_another_link_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "iree-lld" in link_command(cases.FLAGS)
    others = (
        "--iree-llvmcpu-embedded-linker-path=/x",
        "--iree-llvmcpu-link-embedded=false",
        "--iree-link-bitcode=/x.bc",
    )
    for asked in (*others, WITH_LIBRARIES):
        assert link_command((*cases.FLAGS, asked)) == ""
    monkeypatch.setenv("IREE_LLVM_EMBEDDED_LINKER_PATH", "/x")
    assert link_command(cases.FLAGS) == ""


class Program:
    """Stands for a program without executables."""

    regions = ()

    def clone(self) -> Program:
        return Program()


def test_a_link_that_fails_for_another_reason_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    program, with_libraries, rejected = Program(), list[bool](), True

    def run_phases(module: Program, *_: str) -> None:
        with_libraries.append(module is program)
        if rejected or module is not program:
            raise CompilerError("no link")

    monkeypatch.setattr(linking, "_with_libraries", set())
    monkeypatch.setattr(linking, "process_flags", lambda: cases.FLAGS)
    monkeypatch.setattr(linking, "run_phases", run_phases)
    with pytest.raises(CompilerError):
        linking.with_binaries(program, "source")
    rejected = False
    for _ in range(2):
        assert linking.with_binaries(program, "source") is program
    assert with_libraries == [False, True, False, True, True]
