from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from iree_cases import MATMUL

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.errors import UserError
from mlir_sched.targets import detect_target, llvm_cpu
from mlir_sched.targets.llvm_cpu import data_cache_bytes
from mlir_sched.targets.machine import cpu_identity, cpu_model
from mlir_sched.targets.processor import CPU, HOST, flag_values
from mlir_sched.targets.resolved import resolve


@pytest.mark.promise
def test_this_machine_is_described_for_llvm_cpu() -> None:
    target = detect_target("llvm-cpu", threads=1)
    assert target.backend == "llvm-cpu"
    assert target.description.startswith('#hal.executable.target<"llvm-cpu"')
    assert "native_vector_size" in target.description
    assert target.vector_bytes in (16, 32, 64)
    assert target.vector_registers in (16, 32)
    assert target.stack_bytes == 32768
    assert target.cores == 1
    assert target.compiler.startswith("3.13")


@pytest.mark.promise
def test_detection_gives_the_same_key_each_time() -> None:
    assert detect_target("llvm-cpu", 1).key == detect_target("llvm-cpu", 1).key


@pytest.mark.promise
def test_a_key_changes_with_what_decides_the_code_and_with_nothing_else() -> None:
    target = detect_target("llvm-cpu", 1)
    changes = ({"compiler": "3.13.9"}, {"flags": (*target.flags, "--x")}, {"description": "avx"}, {"backend": "cuda"})
    assert len({target.key, *(replace(target, **change).key for change in changes)}) == 5
    assert replace(target, machine=(("cpu", "another"),), cores=9).key == target.key


@pytest.mark.promise
def test_this_machine_is_told_from_others_by_processor_caches_and_runtime() -> None:
    machine = dict(detect_target("llvm-cpu", 1).machine)
    assert list(machine) == ["caches", "cpu", "runtime"]
    assert machine["cpu"].startswith(cpu_model())
    assert machine["caches"].count("K") == 3
    assert machine["runtime"].startswith("3.13")


X86 = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel\t: 9\n"
ARM = "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0xd40\n"


@pytest.mark.promise
@pytest.mark.parametrize(
    ("text", "name", "identity"),
    [(X86, "AMD EPYC", "AMD EPYC/26/2"), (ARM, "", "0x41/8/0x1/0xd40"), ("nothing of the kind", "", "")],
)
def test_a_processor_is_known_by_what_the_kernel_says(tmp_path: Path, text: str, name: str, identity: str) -> None:
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_model(tmp_path / "cpuinfo") == (name or cpu_model(tmp_path / "missing"))
    assert cpu_identity(tmp_path / "cpuinfo") == (identity or cpu_model(tmp_path / "missing"))


def test_an_unknown_target_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match=r"unknown target 'tpu'; known are .*llvm-cpu"):
        detect_target("tpu", 1)


@pytest.mark.parametrize("threads", [0, 100000])
def test_an_impossible_thread_count_is_refused(threads: int) -> None:
    with pytest.raises(UserError, match="threads must be from 1 to"):
        detect_target("llvm-cpu", threads)


@pytest.mark.promise
def test_a_target_that_iree_does_not_know_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llvm_cpu, "FLAGS", ("--iree-no-such-flag",))
    with pytest.raises(UserError, match="rejects the flags --iree-no-such-flag"):
        detect_target("llvm-cpu", 1)


@pytest.mark.parametrize(("features", "registers"), [("+avx2,+avx512f", 32), ("+avx2", 16), ('"aarch64-none-elf"', 32)])
def test_vector_registers_follow_the_instruction_set(features: str, registers: int) -> None:
    text = f"<{features}, max_stack_allocation_size = 32768 : i64, native_vector_size = 32 : i64>"
    target = llvm_cpu.describe(text, 1)
    assert (target.vector_registers, target.vector_bytes) == (registers, 32)


def test_cache_sizes_are_read_from_sysfs(tmp_path: Path) -> None:
    for index, (level, kind, size) in enumerate([(1, "Instruction", "64K"), (1, "Data", "48K"), (2, "Unified", "2M")]):
        folder = tmp_path / "cpu0" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, value in (("level", str(level)), ("type", kind), ("size", size)):
            (folder / name).write_text(value + "\n")
    assert data_cache_bytes(1, tmp_path) == 48 << 10
    assert data_cache_bytes(2, tmp_path) == 2 << 20
    assert data_cache_bytes(3, tmp_path) == 0


@pytest.mark.promise
def test_the_flags_of_this_machine_name_its_processor_and_make_the_code_of_host(tmp_path: Path) -> None:
    target = detect_target("llvm-cpu", 1)
    assert flag_values(target.flags)[CPU] == target.processor != HOST
    assert target.description == resolve("llvm-cpu", llvm_cpu.FLAGS)
    model = tmp_path / "model.mlir"
    model.write_text(MATMUL)
    assert compile_to_bytes(model, target.flags) == compile_to_bytes(model, llvm_cpu.FLAGS)


@pytest.mark.parametrize(
    ("of_name", "of_host", "flags"),
    [
        ("+avx,+sse", "+avx,+sse,+avx,-sse", ("cpu=a", "cpu-features=+avx,-sse")),
        ("+avx,+sse", "+avx,+sse", ("cpu=a",)),
        ("+avx,+sse", "+sse", ("cpu=a", "cpu-features=+sse")),
        ("", "+neon", ("cpu=a", "cpu-features=+neon")),
    ],
)
def test_the_features_that_a_processor_has_beside_those_of_its_name_are_given(
    monkeypatch: pytest.MonkeyPatch, of_name: str, of_host: str, flags: tuple[str, ...]
) -> None:
    def resolved(_: str, given: tuple[str, ...]) -> str:
        return f'cpu = "a", cpu_features = "{of_host if given == ("planted",) else of_name}"'

    monkeypatch.setattr(llvm_cpu, "resolve", resolved)
    assert llvm_cpu.naming_flags.__wrapped__(("planted",))[2:] == tuple(f"--iree-llvmcpu-target-{f}" for f in flags)
