"""The model of a GPU's time: its parts by hand, and what it prefers."""

from __future__ import annotations

import pytest
from gpu_model.kernels import LOOP, ptx, rows

from mlir_sched.compiler.compile_result import Launch
from mlir_sched.gpu_model.estimate import ARITHMETIC_LATENCY, Estimate, estimate
from mlir_sched.gpu_model.ptx import read_kernel
from mlir_sched.gpu_model.ptxas import AssemblyError, Resources
from mlir_sched.targets.target import GpuResources

DEVICE = GpuResources(10, 2048, 32, 65536, 100 << 10, 64, 1024, 1e9, 1e12)


def time_of(
    body: str, *, workgroups: int = 1, threads: int = 32, registers: int = 32, shared: int = 0, bytes_: int = 0
) -> Estimate:
    launch = Launch((workgroups, 1, 1), (threads, 1, 1), shared)
    kernel = read_kernel(ptx(body, f"{threads}, 1, 1"))
    return estimate(kernel, Resources(registers, 0), launch, DEVICE, footprint_bytes=bytes_)


FMAS = "\n".join(f"\tfma.rn.f32 %r{10 + index}, %r9, %r9, %r9;" for index in range(64))
"""Multiply-adds that do not depend on each other."""


def test_arithmetic_takes_its_clocks() -> None:
    found = time_of(FMAS, workgroups=640, threads=256)
    assert found.limit == "arithmetic"
    # 64 workgroups per multiprocessor, each of 256 threads, 64 multiply-adds per clock
    assert found.seconds == pytest.approx(64 * 256 * 64 / 64 / 1e9)


@pytest.mark.parametrize(("warps", "partitions"), [(1, 1), (3, 1), (4, 1), (5, 2), (8, 2)])
def test_a_warp_has_the_units_of_one_partition(warps: int, partitions: int) -> None:
    """A partition multiplies and adds 16 numbers per clock, whatever the other three do."""
    found = time_of(FMAS, threads=32 * warps)
    assert found.seconds == pytest.approx((partitions * 64 * 32 / 16 + ARITHMETIC_LATENCY) / 1e9)


def test_the_way_to_memory_is_not_parted() -> None:
    one, four = (time_of(rows(128), workgroups=count, threads=32) for count in (96_000, 384_000))
    assert one.limit == "L2 cache"
    assert four.seconds == pytest.approx(4 * one.seconds)


def test_a_single_warp_waits_for_its_loads() -> None:
    found = time_of(LOOP)
    assert found.limit == "latency"
    assert found.seconds > 40 * 500 / 1e9


def test_more_warps_hide_the_wait_for_results() -> None:
    """Accumulators that depend on each other cost a warp that is alone four clocks each, and nothing beside others."""
    chain = "\n".join(["\tfma.rn.f32 %r9, %r9, %r9, %r9;"] * 64)
    alone = [time_of(code, workgroups=10).seconds for code in (FMAS, chain)]
    assert alone[1] - alone[0] == pytest.approx(63 * ARITHMETIC_LATENCY / 1e9)
    beside_others = [time_of(code, workgroups=640, threads=256).seconds for code in (FMAS, chain)]
    assert beside_others[0] == beside_others[1]


def test_the_memory_of_the_device_is_read_once_at_least() -> None:
    found = time_of(FMAS, bytes_=1 << 30)
    assert (found.limit, found.seconds) == ("device memory", (1 << 30) / 1e12)


def test_strided_loads_take_longer_than_contiguous_ones() -> None:
    contiguous, strided = (time_of(rows(stride), workgroups=100_000) for stride in (4, 128))
    assert strided.limit == "L2 cache"
    assert strided.seconds > contiguous.seconds
    assert strided.moved_bytes == 8 * contiguous.moved_bytes == 100_000 * 32 * 32


def test_matrix_units_are_counted_by_their_shape() -> None:
    code = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1, %r2}, {%r3}, {%r4}, {%r5};"
    found = time_of("\n".join([code] * 16), workgroups=640, threads=256)
    assert found.limit == "matrix units"
    assert found.seconds == pytest.approx(64 * 8 * 16 * 16 * 8 * 16 / 1024 / 1e9)


@pytest.mark.parametrize(
    ("registers", "shared", "occupancy"), [(32, 0, 1.0), (128, 0, 0.25), (255, 0, 0.125), (32, 24 << 10, 0.5)]
)
def test_occupancy_follows_from_registers_and_shared_memory(registers: int, shared: int, occupancy: float) -> None:
    found = time_of(FMAS, workgroups=10_000, threads=256, registers=registers, shared=shared)
    assert found.occupancy == occupancy


@pytest.mark.parametrize(("registers", "shared", "what"), [(96, 0, "registers"), (32, 100 << 10, "shared memory")])
def test_a_workgroup_that_does_not_fit_is_refused(registers: int, shared: int, what: str) -> None:
    with pytest.raises(AssemblyError, match=what):
        time_of(FMAS, threads=1024, registers=registers, shared=shared)
