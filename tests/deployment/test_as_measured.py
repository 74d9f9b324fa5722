"""What is compiled is compared with what was measured: processor, flags and compiler; the compiling machine is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mlir_sched.compiler.version import compiler_version
from mlir_sched.deployment.as_measured import differences
from mlir_sched.targets import llvm_cpu
from mlir_sched.targets.processor import CPU, CPU_FEATURES, HOST
from mlir_sched.targets.target import Target
from mlir_sched.tuned_folder.folder import TunedFolder

DEVICE = llvm_cpu.FLAGS[:2]
ELSEWHERE = (*DEVICE, f"{CPU}=znver3", f"{CPU_FEATURES}=-sha", "--iree-opt-data-tiling")
"""The flags of a folder that was tuned on a machine which is not this one."""


@pytest.fixture(scope="module")
def elsewhere() -> Target:
    return llvm_cpu.target_of(ELSEWHERE)


def folder_of(flags: tuple[str, ...], /, **summary: Any) -> TunedFolder:
    return TunedFolder(Path("tuned"), flags, "", Path("tuned/library.mlir"), None, summary)


def noted(target: Target, /, **other: str) -> Mapping[str, Mapping[str, str]]:
    """Return the provenance of a script that was measured on a target."""
    versions = f"mlir-sched 0.1.0, iree-compiler {target.compiler}"
    known = {"target": f"{target.name} {target.processor}", "target_key": target.key, "versions": versions}
    return {"tuned_0": {**known, **other}}


@pytest.mark.promise
def test_a_folder_tuned_elsewhere_is_compiled_as_measured(elsewhere: Target) -> None:
    folder = folder_of(ELSEWHERE, flags=list(ELSEWHERE), versions={"iree-compiler": compiler_version()})
    assert elsewhere.processor == "znver3"
    assert differences(folder, (), noted(elsewhere)) == ()
    assert differences(folder, ("--iree-opt-data-tiling=true", "-iree-opt-data-tiling"), noted(elsewhere)) == ()
    assert differences(folder, ("--iree-vm-bytecode-module-strip-source-map",), noted(elsewhere)) == ()


@pytest.mark.promise
@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        (f"{CPU}=znver4", "the code is for the processor znver4, not znver3"),
        (f"{CPU_FEATURES}=-sha,+avx512f", "the code is for the processor znver3 with +avx512f"),
        (f"{CPU_FEATURES}=", "the code is for the processor znver3 without -sha"),
        ("--iree-opt-level=O3", "--iree-opt-level is O3, and was not given"),
        ("--iree-opt-data-tiling=false", "--iree-opt-data-tiling is false, and was true"),
    ],
)
@pytest.mark.parametrize("edited", [False, True])
def test_other_processors_and_flags_are_told(elsewhere: Target, flag: str, expected: str, edited: bool) -> None:
    given = (flag,)
    folder = folder_of((*ELSEWHERE, *(given if edited else ())), flags=list(ELSEWHERE))
    assert differences(folder, () if edited else given, noted(elsewhere)) == (expected,)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"target": "llvm-cpu sapphirerapids"}, "the code is for the processor znver3, not sapphirerapids"),
        ({"target_key": "0"}, "the code is for znver3 with other features than the scripts were measured with"),
        ({"versions": "iree-compiler 3.12.0"}, f"the compiler is iree-compiler {compiler_version()}, and was 3.12.0"),
    ],
)
def test_what_the_library_says_of_its_measurements_is_compared(
    elsewhere: Target, other: dict[str, str], expected: str
) -> None:
    assert differences(folder_of(ELSEWHERE), (), noted(elsewhere, **other)) == (expected,)


def test_a_folder_without_scripts_is_compared_by_its_summary() -> None:
    (text,) = differences(folder_of(ELSEWHERE, versions={"iree-compiler": "3.12.0"}), (), {})
    assert text.endswith("and was 3.12.0")
    (text,) = differences(folder_of(llvm_cpu.FLAGS, flags=list(ELSEWHERE[:3])), (), {})
    assert text == f"the code is for the processor {HOST}, not znver3"


@pytest.mark.promise
def test_host_is_compared_as_the_processor_of_the_machine_that_compiles(here: Target) -> None:
    by_host = llvm_cpu.target_of(llvm_cpu.FLAGS)
    assert by_host.processor == here.processor
    assert differences(folder_of(llvm_cpu.FLAGS), (), noted(by_host)) == ()
    (text,) = differences(folder_of(llvm_cpu.FLAGS), (), noted(by_host, target="llvm-cpu cpu-of-another"))
    assert text == f"the code is for the processor {here.processor}, not cpu-of-another"


def test_a_folder_that_was_written_by_hand_says_nothing_to_compare() -> None:
    assert differences(folder_of(llvm_cpu.FLAGS), (), {"by_hand": {}}) == ()
