"""Sectors of global memory, and turns of the banks of shared memory, that a warp's access takes."""

from __future__ import annotations

import pytest
from gpu_model.kernels import ptx, rows

from mlir_sched.gpu_model.execution import Threads
from mlir_sched.gpu_model.memory import Access, accesses
from mlir_sched.gpu_model.ptx import read_kernel


def access(body: str) -> Access:
    kernel = read_kernel(ptx(body))
    threads = Threads(kernel)
    (found,) = accesses(kernel, [threads.first_addresses((lane, 0, 0)) for lane in range(32)])
    return found


@pytest.mark.parametrize(
    ("stride", "load", "sectors"),
    [
        (4, "ld.global.nc.b32 %r9, [%rd4];", 4),
        (16, "ld.global.nc.v4.b32 {%r6, %r7, %r8, %r9}, [%rd4];", 16),
        (0, "ld.global.nc.b32 %r9, [%rd4];", 1),
        (4096, "ld.global.nc.b32 %r9, [%rd4];", 32),
        (2, "ld.global.nc.b16 %r9, [%rd4];", 2),
        (16, "cp.async.cg.shared.global [%r1], [%rd4], 16;", 16),
    ],
)
def test_sectors_of_global_memory(stride: int, load: str, sectors: int) -> None:
    assert access(rows(stride, load)).global_bytes == 32 * sectors


def shared(stride: int, load: str) -> str:
    return f"\tmov.u32 %r1, %tid.x;\n\tmul.lo.s32 %r2, %r1, {stride};\n\t{load}"


@pytest.mark.parametrize(("stride", "turns"), [(4, 1), (0, 1), (8, 2), (128, 32), (132, 1)])
def test_turns_of_the_banks(stride: int, turns: int) -> None:
    assert access(shared(stride, "ld.shared.b32 %r9, [%r2];")).shared_turns == turns


def test_whole_rows_of_sixteen_bytes_take_four_turns() -> None:
    assert access(shared(16, "ld.shared.v4.b32 {%r6, %r7, %r8, %r9}, [%r2];")).shared_turns == 4


def test_an_unknown_address_counts_as_that_of_a_neighbour() -> None:
    assert access(rows(4, "ld.global.nc.b32 %r9, [%rd77];")).global_bytes == 128
