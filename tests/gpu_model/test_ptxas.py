"""NVIDIA's assembler: what it says of code, and what is said without it."""

from __future__ import annotations

import pytest
from gpu_model.kernels import LOOP, ptx

from mlir_sched.errors import UserError
from mlir_sched.gpu_model import ptxas
from mlir_sched.gpu_model.ptxas import AssemblyError, assemble, find_assembler


@pytest.mark.promise
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90"])
def test_code_is_assembled(architecture: str) -> None:
    found = assemble(find_assembler(), ptx(LOOP), architecture)
    assert 4 <= found.registers <= 64
    assert found.spilled_bytes == 0


@pytest.mark.promise
def test_wrong_code_is_refused_with_the_assemblers_words() -> None:
    with pytest.raises(AssemblyError, match="ptxas refuses the code"):
        assemble(find_assembler(), ptx("\tno.such.instruction %r1;"), "sm_80")


@pytest.mark.promise
def test_a_warning_is_no_success() -> None:
    """A workgroup of 4096 threads, which IREE accepts, is a warning of the assembler alone."""
    with pytest.raises(AssemblyError, match=r"ptxas warns: .*maxntid"):
        assemble(find_assembler(), ptx(LOOP, "4096, 1, 1"), "sm_80")


def test_without_the_assembler_the_error_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptxas, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(UserError, match=r"pip install 'mlir-sched\[cuda\]'"):
        find_assembler()
