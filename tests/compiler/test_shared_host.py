"""A candidate's program: a host that was compiled once for its task, and a binary without what it does not call."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest
from folders import SUPPORT
from iree.compiler import ir

from mlir_sched.compiler import CompilerPool, WorkerLimits
from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.version import compiler_program
from mlir_sched.compiler.worker import linking
from mlir_sched.compiler.worker_process import Worker, run_isolated
from mlir_sched.errors import CompilerError
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.script.form import script_context

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
@pytest.mark.sweep("landing", keep="softmax")
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


@pytest.fixture
def with_a_placeholder(tmp_path: Path) -> str:
    """Return a program with a number that equals a placeholder."""
    own = (
        "util.func public @own() -> i32 {\n %number = arith.constant 0x7FFFFF03 : i32\n util.return %number : i32\n}\n"
    )
    head, tail = cases.task_of(tmp_path, cases.MATMUL).source.split("util.func public @task", 1)
    return f"{head}{own}util.func public @task{tail}"


@pytest.mark.promise
def test_a_number_of_the_program_stays_where_it_equals_a_placeholder(with_a_placeholder: str) -> None:
    with CompilerPool(cases.FLAGS, workers=1) as pool:
        for _, result in pool.compile(with_a_placeholder, [None, cases.GOOD_SCRIPT]):
            assert result.vmfb is not None, result.failure
            assert number_of(result.vmfb, "own") == 0x7FFFFF03


@pytest.mark.landing
def test_a_host_that_serves_one_candidate_alone_is_tried_once(
    with_a_placeholder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    scripts = [None, cases.GOOD_SCRIPT]
    assert run_isolated(cases.FLAGS, "compiler_jobs:binaries_made", with_a_placeholder, scripts, cases.FLAGS) == [2, 1]


@pytest.mark.landing
def test_a_link_that_fails_is_mended_and_not_what_a_process_said_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    task = cases.task_of(tmp_path, REMAINDER)
    with Worker(cases.FLAGS) as worker:
        worker.submit("compiler_jobs:tried_alone", task.source, cases.FLAGS)
        result = worker.wait(WorkerLimits())
        assert worker.said() == ""
    (whole,) = compiled(task, None, flags=(*cases.FLAGS, WITH_LIBRARIES))
    assert result.binary_hash == whole.binary_hash


@pytest.mark.landing
def test_a_program_that_is_not_valid_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    with pytest.raises(CompilerError, match="terminator"):
        run_isolated(cases.FLAGS, "compiler_jobs:load_invalid_program")


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
    assert "iree-lld" in linking.link_command(cases.FLAGS)
    others = (
        "--iree-llvmcpu-embedded-linker-path=/x",
        "--iree-llvmcpu-link-embedded=false",
        "--iree-link-bitcode=/x.bc",
    )
    for asked in (*others, WITH_LIBRARIES):
        assert linking.link_command((*cases.FLAGS, asked)) == ""
    monkeypatch.setenv("IREE_LLVM_EMBEDDED_LINKER_PATH", "/x")
    assert linking.link_command(cases.FLAGS) == ""


PROGRAM = """
hal.executable private @dispatch {
  hal.executable.variant public @embedded target(<"llvm-cpu", "embedded-elf-x86_64",
      {target_triple = "x86_64-unknown-unknown-eabi-elf"}>) {
    hal.executable.export public @dispatch ordinal(0) layout(#hal.pipeline.layout<bindings = [
        #hal.pipeline.binding<storage_buffer>]>)
    builtin.module {
      llvm.func @dispatch() attributes {} {
        llvm.return
      }
    }
  }
}
"""
REMAINDERS = "%x = llvm.mlir.zero : f32\n %y = arith.remf %x, %x : f32\n llvm.return"
OBJECTS = '[#hal.executable.object<{path = "users.o"}>]'


@pytest.fixture
def linked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[bool]]:
    """Return a function that makes the binaries of a program, and returns for each try whether it had the libraries."""

    def of(text: str, *, failing: tuple[bool, ...] = ()) -> list[bool]:
        tries = list[bool]()

        def run_phases(tried: object, *_: str) -> None:
            tries.append(tried is module)
            if tries[-1] in failing:
                raise CompilerError("no link")

        monkeypatch.setattr(linking, "run_phases", run_phases)
        with script_context(), ir.Location.unknown():
            module = ir.Module.parse(text).operation
            linking.with_binaries(module, str(module))
        return tries

    monkeypatch.setattr(linking, "_with_libraries", set())
    monkeypatch.setattr(linking, "process_flags", lambda: cases.FLAGS)
    return of


@pytest.mark.parametrize(
    ("place", "other"),
    [
        pytest.param("llvm.return", REMAINDERS, id="remainder"),
        pytest.param("x86_64-unknown-unknown-eabi-elf", "x86_64-linux-gnu", id="triple"),
        pytest.param("}>) {", f"}}>) objects({OBJECTS}) {{", id="objects"),
        pytest.param("attributes {}", f"attributes {{hal.executable.objects = {OBJECTS}}}", id="objects-of-function"),
    ],
)
def test_a_program_that_may_need_more_than_its_own_code_is_linked_as_iree_does(
    place: str, other: str, linked: Callable[..., list[bool]]
) -> None:
    assert place in PROGRAM
    assert linked(PROGRAM) == [False]
    assert linked(PROGRAM.replace(place, other)) == [True]


def test_a_link_that_needs_the_libraries_is_not_tried_again_for_a_task(linked: Callable[..., list[bool]]) -> None:
    assert linked(PROGRAM, failing=(False,)) == [False, True]
    assert linked(PROGRAM) == [True]


def test_a_program_that_is_rejected_either_way_says_nothing_of_others(linked: Callable[..., list[bool]]) -> None:
    with pytest.raises(CompilerError):
        linked(PROGRAM, failing=(False, True))
    assert linked(PROGRAM) == [False]


def test_a_target_without_the_form_of_another_link_is_linked_as_iree_does(
    linked: Callable[..., list[bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linking, "_ALONE", "no attribute")
    assert linked(PROGRAM) == [True]
