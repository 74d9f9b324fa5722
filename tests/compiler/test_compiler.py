from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import numpy as np
import psutil
import pytest
from applied_sequences import applied_sequences
from folders import SUPPORT
from iree.compiler import ir
from machine_code import machine_code

from mlir_sched.compiler import CompilerPool, ModelCompileError, WorkerLimits, compile_model
from mlir_sched.compiler.compile_result import CompileResult
from mlir_sched.compiler.iree_compile import PROGRAM, iree_compile_path
from mlir_sched.compiler.passes import run_passes
from mlir_sched.compiler.worker_process import Worker, candidate_limits
from mlir_sched.errors import CompilerError, FailureClass, UserError
from mlir_sched.processes import child
from mlir_sched.processes.executable import Ended
from mlir_sched.processes.limits import ChildTimeoutError
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.script.form import script_context


@pytest.fixture(scope="module")
def matmul(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return cases.task_of(tmp_path_factory.mktemp("matmul"), cases.MATMUL)


@pytest.fixture(scope="module")
def conv(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return cases.task_of(tmp_path_factory.mktemp("conv"), cases.CONV1D)


@pytest.fixture(scope="module")
def big_matmul(tmp_path_factory: pytest.TempPathFactory) -> Task:
    return cases.task_of(tmp_path_factory.mktemp("big"), cases.BIG_MATMUL)


@pytest.fixture(scope="module")
def pool() -> Iterator[CompilerPool]:
    with CompilerPool(cases.FLAGS, workers=1, limits=WorkerLimits(timeout_s=60)) as the_pool:
        yield the_pool


def one(pool: CompilerPool, task: Task, script: str | None) -> CompileResult:
    ((index, result),) = pool.compile(task.source, [script])
    assert index == 0
    assert (result.vmfb is None) == (result.failure is not None)
    return result


@pytest.mark.promise
def test_a_script_changes_the_code_and_keeps_the_numbers(pool: CompilerPool, matmul: Task) -> None:
    untuned, tuned = one(pool, matmul, None), one(pool, matmul, cases.GOOD_SCRIPT)
    assert untuned.failure is tuned.failure is None
    assert untuned.binary_hash != tuned.binary_hash
    rng = np.random.default_rng(0)
    a, b = (rng.random(spec.shape, dtype=np.float32) for spec in matmul.inputs)
    for result in (untuned, tuned):
        assert result.vmfb is not None
        *_, product = cases.run_program(result.vmfb, "task", [a, b], [(64, 64)])
        np.testing.assert_allclose(product, a @ b, rtol=1e-5)


@pytest.mark.promise
def test_the_same_code_has_the_same_hash_in_every_worker(pool: CompilerPool, matmul: Task) -> None:
    commented = cases.GOOD_SCRIPT.replace("module attributes", "// a comment\n\nmodule attributes")
    first, second = one(pool, matmul, cases.GOOD_SCRIPT), one(pool, matmul, commented)
    with CompilerPool(cases.FLAGS, workers=1) as other:
        third = one(other, matmul, cases.GOOD_SCRIPT)
    assert first.binary_hash == second.binary_hash == third.binary_hash


@pytest.mark.promise
def test_a_lowering_config_is_seen_in_the_configured_code(pool: CompilerPool, matmul: Task) -> None:
    script = cases.lowering_config_script("linalg.matmul", cases.MATMUL_CONFIG)
    result = one(pool, matmul, script)
    assert result.failure is None
    assert result.binary_hash != one(pool, matmul, None).binary_hash


WITHOUT_MAPPING = cases.TILE.replace(
    "(mapping = [#iree_codegen.workgroup_mapping<y>, #iree_codegen.workgroup_mapping<x>])", ""
)

NOT_A_SCRIPT = "this is not MLIR"
NO_SEQUENCE = cases.GOOD_SCRIPT.replace("@strategy", "@other")
HALF_WAY = cases.script(cases.TILE, "transform.structured.vectorize %forall : !transform.any_op\n", cases.applied("%f"))


@pytest.mark.promise
@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        pytest.param(NOT_A_SCRIPT, FailureClass.SCRIPT_ERROR, "does not parse", id="not-mlir"),
        pytest.param(NO_SEQUENCE, FailureClass.SCRIPT_ERROR, "no transform.named_sequence @strategy", id="no-sequence"),
        pytest.param(HALF_WAY, FailureClass.SCRIPT_ERROR, "cannot vectorize", id="fails-half-way"),
        pytest.param(
            cases.GOOD_SCRIPT.replace('"linalg.matmul"', '"linalg.conv_2d"'),
            FailureClass.SCRIPT_ERROR,
            "does not apply",
            id="matches-nothing",
        ),
        pytest.param(
            cases.script(cases.TILE, cases.VECTORIZE, cases.LOWER, cases.no_pipeline("%f3")),
            FailureClass.NOT_APPLIED,
            "no mlir_sched.applied annotation",
            id="annotates-nothing",
        ),
        pytest.param(
            cases.script(cases.TILE, cases.VECTORIZE, cases.LOWER, cases.applied("%f3")),
            FailureClass.NOT_APPLIED,
            "IREE would choose by itself",
            id="no-translation-info",
        ),
        pytest.param(
            cases.script(WITHOUT_MAPPING, cases.VECTORIZE, cases.LOWER, cases.no_pipeline("%f3"), cases.applied("%f3")),
            FailureClass.NOT_APPLIED,
            "left an scf.forall",
            id="leaves-forall",
        ),
        pytest.param(
            cases.script(cases.TILE, cases.no_pipeline("%f"), cases.applied("%f")),
            FailureClass.NOT_APPLIED,
            "on tensors",
            id="leaves-tensors",
        ),
        pytest.param(
            cases.script(cases.no_pipeline("%f"), cases.applied("%f"), argument="readonly"),
            FailureClass.NOT_APPLIED,
            "on tensors",
            id="does-nothing",
        ),
        pytest.param(
            cases.lowering_config_script("linalg.generic", cases.MATMUL_CONFIG),
            FailureClass.NOT_APPLIED,
            "sets no lowering_config",
            id="config-on-nothing",
        ),
        pytest.param(cases.CRASH_SCRIPT, FailureClass.COMPILE_CRASH, "SIGSEGV", id="crashes-the-compiler"),
    ],
)
def test_a_script_that_is_not_applied_fails(
    pool: CompilerPool, matmul: Task, script: str, kind: FailureClass, message: str
) -> None:
    result = one(pool, matmul, script)
    assert result.failure is not None
    assert (result.failure.kind, result.vmfb, result.binary_hash) == (kind, None, "")
    assert message in result.failure.message
    assert len(result.failure.message) < 1000


@pytest.mark.promise
def test_a_lowering_config_that_iree_drops_is_not_applied(pool: CompilerPool, conv: Task) -> None:
    config = (
        "#iree_cpu.lowering_config<distribution = [10, 16, 0, 0], vector_common_parallel = [5, 16, 0, 0], "
        "vector_reduction = [0, 0, 1, 1]>"
    )
    result = one(pool, conv, cases.lowering_config_script("linalg.generic", config))
    assert result.failure is not None
    assert result.failure.kind is FailureClass.NOT_APPLIED
    assert "IREE changed the lowering_config" in result.failure.message


@pytest.mark.promise
def test_a_candidate_that_never_ends_is_stopped_and_the_pool_goes_on(big_matmul: Task) -> None:
    with CompilerPool(cases.FLAGS, workers=1, limits=WorkerLimits(timeout_s=1.0)) as pool:
        start = time.monotonic()
        results = dict(pool.compile(big_matmul.source, [cases.ENDLESS_SCRIPT, NOT_A_SCRIPT]))
        assert time.monotonic() - start < 10
    assert results[0].failure is not None
    assert results[0].failure.kind is FailureClass.COMPILE_TIMEOUT
    assert "stopped after 1 s" in results[0].failure.message
    assert results[1].failure is not None
    assert results[1].failure.kind is FailureClass.SCRIPT_ERROR


@pytest.mark.promise
def test_a_candidate_that_takes_too_much_memory_is_stopped(big_matmul: Task) -> None:
    with CompilerPool(cases.FLAGS, workers=1, limits=WorkerLimits(timeout_s=60, memory_bytes=400 << 20)) as pool:
        result = one(pool, big_matmul, cases.ENDLESS_SCRIPT)
    assert result.failure is not None
    assert result.failure.kind is FailureClass.COMPILE_MEMORY
    assert "more than 400 MiB of memory" in result.failure.message


@pytest.mark.parametrize(
    ("machine_gib", "workers", "limit_gib"), [(24, 2, 4), (64, 64, 1), (8, 2, 3), (1, 2, 0.75)], ids=str
)
def test_the_memory_of_a_candidate_depends_on_the_machine_and_the_workers(
    monkeypatch: pytest.MonkeyPatch, machine_gib: int, workers: int, limit_gib: float
) -> None:
    monkeypatch.setattr("mlir_sched.processes.memory.machine_memory_bytes", lambda: machine_gib << 30)
    limits = candidate_limits(workers)
    assert limits.memory_bytes == limit_gib * (1 << 30)
    assert limits.recycle_bytes <= limits.memory_bytes / 2  # what earlier candidates left is not held against one


def children() -> set[int]:
    """Return the ids of the processes that this one started."""
    return {child.pid for child in psutil.Process().children()}


@pytest.mark.promise
def test_a_worker_that_has_grown_ends_and_the_next_candidate_has_another(matmul: Task) -> None:
    before = children()
    with CompilerPool(cases.FLAGS, workers=1, limits=WorkerLimits(recycle_bytes=1)) as pool:
        assert one(pool, matmul, NOT_A_SCRIPT).failure is not None
        assert children() == before
        assert one(pool, matmul, None).failure is None


@pytest.mark.promise
def test_two_workers_give_every_candidate_once(matmul: Task) -> None:
    scripts = [None, NOT_A_SCRIPT, cases.GOOD_SCRIPT, None, NO_SEQUENCE]
    with CompilerPool(cases.FLAGS, workers=2) as pool:
        results = list(pool.compile(matmul.source, scripts))
    assert sorted(index for index, _ in results) == [0, 1, 2, 3, 4]
    assert [index for index, result in sorted(results) if result.failure is None] == [0, 2, 3]


@pytest.mark.promise
def test_stopping_early_leaves_the_pool_usable(matmul: Task) -> None:
    with CompilerPool(cases.FLAGS, workers=2) as pool:
        iterator = pool.compile(matmul.source, [NOT_A_SCRIPT, None, None])
        next(iterator)
        iterator.close()
        assert one(pool, matmul, NO_SEQUENCE).failure is not None


@pytest.mark.promise
def test_a_pool_starts_its_processes_for_the_first_candidate_and_leaves_none(matmul: Task) -> None:
    before = children()
    with CompilerPool(cases.FLAGS, workers=2) as pool:
        assert list(pool.compile_all([])) == []
        assert children() == before
        one(pool, matmul, None)
        assert len(children() - before) == 1
        assert len(list(pool.compile(matmul.source, [None, None, None]))) == 3
        workers = children() - before
        assert len(workers) == 2
    assert not any(psutil.pid_exists(pid) for pid in workers)


@pytest.mark.promise
def test_an_unknown_flag_is_the_users_error(matmul: Task) -> None:
    with (
        CompilerPool(("--no-such-flag",), workers=1) as pool,
        pytest.raises(UserError, match="Unknown command line argument '--no-such-flag'"),
    ):
        list(pool.compile(matmul.source, [None]))


def test_a_task_without_a_program_is_refused(pool: CompilerPool) -> None:
    with pytest.raises(ValueError, match="no program to compile"):
        list(pool.compile("", [None]))


@pytest.mark.promise
def test_an_unexpected_error_in_a_worker_is_that_candidates_failure(pool: CompilerPool, matmul: Task) -> None:
    result = one(pool, replace(matmul, source="junk"), None)
    assert result.failure is not None
    assert result.failure.kind is FailureClass.INTERNAL_ERROR
    assert one(pool, matmul, NOT_A_SCRIPT).failure is not None


@pytest.mark.promise
def test_a_dispatch_that_iree_fails_to_prepare_for_scripts_is_a_compile_error(
    matmul: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setattr("mlir_sched.compiler.pool._JOB", "broken_preparation:compile_candidate")
    with CompilerPool(cases.FLAGS, workers=1) as pool:
        for script in (None, cases.GOOD_SCRIPT):
            result = one(pool, matmul, script)
            assert result.failure is not None
            assert (result.failure.kind, result.failure.message) == (FailureClass.COMPILE_ERROR, "error: a pass fails")


SUM = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %sum = arith.addf %x, %x : tensor<8xf32>
  return %sum : tensor<8xf32>
}
"""


def test_a_pass_that_fails_is_the_compilers_error() -> None:
    with script_context(), ir.Location.unknown():
        module = ir.Module.parse(SUM)
        with pytest.raises(CompilerError, match="failed to legalize"):
            run_passes("builtin.module(iree-hal-conversion)", module.operation)


@pytest.mark.promise
def test_the_parents_side_does_not_load_the_compiler() -> None:
    program = (
        "import sys, mlir_sched.tasks, mlir_sched.compiler, mlir_sched.targets; print('iree.compiler' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_pool_needs_a_worker() -> None:
    with pytest.raises(ValueError, match="at least 1 worker"):
        CompilerPool(cases.FLAGS, workers=0)


@pytest.mark.promise
def test_workers_end_with_a_parent_that_is_killed() -> None:
    program = f"""
        import time
        from mlir_sched.compiler.worker_process import Worker, WorkerLimits
        worker = Worker({cases.FLAGS!r})
        worker.submit("time:sleep", 600)
        while not worker._ready: worker.is_done(WorkerLimits())
        print(worker.pid, flush=True)
        time.sleep(600)
    """
    parent = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    os.kill(parent.pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 5
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


@pytest.mark.promise
def test_an_interrupt_from_the_keyboard_does_not_reach_the_workers() -> None:
    with Worker(cases.FLAGS) as worker:
        assert os.getpgid(worker.pid) != os.getpgid(0)


@pytest.mark.promise
def test_a_worker_that_does_not_finish_its_message_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os, sys, time; os.write(int(sys.argv[1]), bytes([5])); time.sleep(600)"
    monkeypatch.setattr(child, "python_command", lambda _, *rest, python: [python, "-c", program, *rest])
    with Worker(cases.FLAGS) as worker:
        worker.submit("time:sleep", 0)
        with pytest.raises(ChildTimeoutError, match="stopped after 1 s"):
            worker.wait(WorkerLimits(timeout_s=1.0))


LIBRARY_ENTRY = """
  transform.named_sequence @__transform_main(%program: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @is_it(%op: !transform.any_op {transform.readonly}) -> !transform.any_op {
    transform.match.operation_name %op ["linalg.matmul"] : !transform.any_op
    transform.yield %op : !transform.any_op
  }
  transform.named_sequence @__kernel_config(%v: !transform.any_op {transform.readonly}) {
    %ops = transform.collect_matching @is_it in %v : (!transform.any_op) -> !transform.any_op
    transform.foreach %ops : !transform.any_op {
    ^bb0(%op: !transform.any_op):
      %f = transform.get_parent_op %op <{op_name = "func.func", deduplicate}> : (!transform.any_op) -> !transform.any_op
      transform.include @strategy failures(propagate) (%f) : (!transform.any_op) -> ()
    }
    transform.yield
  }
}
"""


def library(folder: Path, script: str, entry: str = LIBRARY_ENTRY) -> Path:
    path = folder / "library.mlir"
    path.write_text(script.rstrip().removesuffix("}") + entry)
    return path


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text(cases.MATMUL)
    return path


@pytest.mark.promise
def test_the_public_route_counts_the_sequences_that_were_applied(model: Path, tmp_path: Path) -> None:
    path = library(tmp_path, cases.GOOD_SCRIPT)
    assert applied_sequences(model, cases.FLAGS, path) == {"strategy": 1}
    compile_model(model, cases.FLAGS, path, tmp_path / "model.vmfb")
    assert (tmp_path / "model.vmfb").stat().st_size > 0


@pytest.mark.promise
def test_the_public_route_sees_a_matcher_that_matches_nothing(model: Path, tmp_path: Path) -> None:
    entry = LIBRARY_ENTRY.replace('"linalg.matmul"', '"linalg.conv_2d"')
    assert applied_sequences(model, cases.FLAGS, library(tmp_path, cases.GOOD_SCRIPT, entry)) == {}


@pytest.mark.promise
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("not a library", id="does-not-parse"),
        pytest.param(None, id="missing"),
        pytest.param(NO_SEQUENCE.rstrip().removesuffix("}") + LIBRARY_ENTRY, id="missing-symbol"),
        pytest.param(HALF_WAY.rstrip().removesuffix("}") + LIBRARY_ENTRY, id="fails-half-way"),
    ],
)
def test_the_public_route_reports_a_library_that_does_not_work(model: Path, tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "library.mlir"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ModelCompileError, match="error:"):
        compile_model(model, cases.FLAGS, path, tmp_path / "model.vmfb")
    assert not (tmp_path / "model.vmfb").exists()
    with pytest.raises(ModelCompileError, match="error:"):
        applied_sequences(model, cases.FLAGS, path)


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("extra", [(), ("--iree-opt-level=O3",), ("--iree-llvmcpu-stack-allocation-limit=65536",)])
@pytest.mark.parametrize("script", [None, cases.GOOD_SCRIPT], ids=["untuned", "script"])
def test_a_worker_makes_the_machine_code_that_iree_compile_makes(
    tmp_path: Path, extra: tuple[str, ...], script: str | None
) -> None:
    flags = (*cases.FLAGS, *extra)
    program = tmp_path / "program.mlir"
    path = None if script is None else library(tmp_path, script)
    task = cases.task_of(tmp_path, cases.MATMUL)
    program.write_text(task.source)
    with CompilerPool(flags, workers=1) as pool:
        result = one(pool, task, script)
    assert result.vmfb is not None
    compile_model(program, (*flags, "--compile-from=executable-sources"), path, tmp_path / "program.vmfb")
    code = machine_code(result.vmfb)
    assert code
    assert code == machine_code((tmp_path / "program.vmfb").read_bytes())


@pytest.mark.promise
def test_a_model_that_needs_too_much_memory_is_the_users_to_know(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.compiler.iree_compile.child_memory_bytes", lambda: 20 << 20)
    with pytest.raises(UserError, match=r"model\.mlir: stopped: it used more than 20 MiB of memory"):
        compile_model(model, cases.FLAGS, None, tmp_path / "model.vmfb")
    assert not (tmp_path / "model.vmfb").exists()


def test_the_compiler_is_the_one_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PROGRAM, str(tmp_path / "iree-compile"))
    with pytest.raises(UserError, match=r"/iree-compile: there is no such program"):
        iree_compile_path()
    (tmp_path / "iree-compile").touch()
    with pytest.raises(UserError, match=r"/iree-compile: there is no such program"):
        iree_compile_path()


@pytest.mark.promise
@pytest.mark.parametrize(
    ("says", "refused"), [("3.13.0rc1 @ 89ece87b", ""), ("3.14.0", "is none: IREE compiler version 3.14")]
)
def test_a_compiler_that_the_environment_names_has_the_supported_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, says: str, refused: str
) -> None:
    named = tmp_path / "iree-compile"
    named.write_text(f"#!/bin/sh\necho 'IREE compiler version {says}'\n")
    named.chmod(0o755)
    monkeypatch.setenv(PROGRAM, str(named))
    with pytest.raises(UserError, match=refused) if refused else nullcontext():
        assert iree_compile_path() == named


def test_a_crash_that_says_nothing_is_told_by_how_the_compiler_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = nullcontext(lambda: Ended(-signal.SIGSEGV, b"", b""))
    monkeypatch.setattr("mlir_sched.compiler.iree_compile.running_program", lambda *_: ended)
    with pytest.raises(ModelCompileError, match="killed by SIGSEGV") as crash:
        compile_model("model.mlir", (), None, Path("none.vmfb"))
    assert "killed by SIGSEGV" in crash.value.diagnostics
