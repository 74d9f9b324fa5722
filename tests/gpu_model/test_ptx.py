"""PTX is read: the kernel of a program, its instructions, labels and parameters."""

from __future__ import annotations

import pytest
from gpu_model.kernels import LOOP, ptx, rows

from mlir_sched.gpu_model.ptx import PtxError, device_code, read_kernel


def test_the_code_of_a_program_ends_at_its_null_byte() -> None:
    text = ptx(LOOP)
    assert device_code(b"before" + text.encode() + b"\0after") == text


@pytest.mark.parametrize(("program", "why"), [(b"ELF", "no PTX"), (2 * (ptx("").encode() + b"\0"), "several")])
def test_a_program_without_exactly_one_dispatch_is_refused(program: bytes, why: str) -> None:
    with pytest.raises(PtxError, match=why):
        device_code(program)


def test_instructions_labels_and_parameters_are_read() -> None:
    kernel = read_kernel(ptx(LOOP, "32, 8, 1"))
    assert kernel.workgroup_size == (32, 8, 1)
    assert kernel.parameters == ("kernel_param_0", "kernel_param_1")
    assert kernel.labels == {"$L__BB0_1": 3}
    assert kernel.instructions[3].operands == ("{%r10, %r11, %r12, %r13}", "[%rd1+16]")
    assert kernel.instructions[7].predicate == "%p1"
    assert kernel.count("ld.", "fma") == 3


def test_an_instruction_may_take_several_lines() -> None:
    split = "\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n\t{%r1, %r2},\n\t{%r3},\n\t{%r4};"
    (found,) = [i for i in read_kernel(ptx(split)).instructions if i.opcode.startswith("mma")]
    assert found.operands == ("{%r1, %r2}", "{%r3}", "{%r4}")


def test_a_text_of_two_kernels_is_refused() -> None:
    with pytest.raises(PtxError, match="2 kernels"):
        read_kernel(ptx(rows(4)) + ptx(rows(4)))
