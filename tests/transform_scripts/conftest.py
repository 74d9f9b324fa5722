"""Compilers that many tests share: for GPUs that need not be there, and for the tasks of models."""

from collections.abc import Iterator

import pytest
from fixed_targets import FIXED_CUDA, FIXED_ROCM, FIXED_VULKAN

from mlir_sched.compiler import CompilerPool
from mlir_sched.targets.target import Target


@pytest.fixture(scope="package")
def vulkan_pool(processes: None) -> Iterator[CompilerPool]:
    """Compile for the fixed Vulkan device."""
    with CompilerPool(FIXED_VULKAN.flags) as pool:
        yield pool


@pytest.fixture(scope="package")
def cuda_pool(processes: None) -> Iterator[CompilerPool]:
    """Compile for the fixed CUDA device."""
    with CompilerPool(FIXED_CUDA.flags) as pool:
        yield pool


@pytest.fixture(scope="package")
def rocm_pool(processes: None) -> Iterator[CompilerPool]:
    """Compile for the fixed ROCm device."""
    with CompilerPool(FIXED_ROCM.flags) as pool:
        yield pool


@pytest.fixture(scope="module")
def pool(processes: None, target: Target) -> Iterator[CompilerPool]:
    """Compile for the target of a module, which is a fixture there."""
    with CompilerPool(target.flags) as started:
        yield started


@pytest.fixture(scope="module", autouse=True)
def programs_are_extracted_once(extracted_once: None) -> None:
    """Extract the tasks of all models of these tests once."""
