"""How long a warp waits that is alone, by hand."""

from __future__ import annotations

import pytest
from gpu_model.kernels import LOOP, ptx

from mlir_sched.gpu_model.estimate import ARITHMETIC_LATENCY, GLOBAL_LATENCY, SHARED_LATENCY, waiting_clocks
from mlir_sched.gpu_model.execution import Threads
from mlir_sched.gpu_model.ptx import read_kernel


def clocks(*lines: str) -> float:
    kernel = read_kernel(ptx("\n".join(lines)))
    return waiting_clocks(kernel, Threads(kernel).execute((0, 0, 0)).counts)


LOADS = ("ld.global.b32 %r1, [%rd1];", "ld.global.v2.b32 {%r2, %r3}, [%rd2+64];")
SUM = "add.f32 %r9, %r1, %r3;"


def test_loads_wait_together() -> None:
    assert clocks(*LOADS) == GLOBAL_LATENCY


def test_what_is_computed_from_loads_waits_for_them() -> None:
    assert clocks(*LOADS, SUM, SUM) == GLOBAL_LATENCY + ARITHMETIC_LATENCY
    assert clocks(*LOADS, SUM, "mul.f32 %r9, %r9, %r9;") == GLOBAL_LATENCY + 2 * ARITHMETIC_LATENCY


def test_an_address_that_is_loaded_is_waited_for() -> None:
    assert clocks("ld.global.b64 %rd1, [%rd2];", "ld.global.b32 %r1, [%rd1+8];") == 2 * GLOBAL_LATENCY


def test_a_store_waits_for_nothing_but_its_data() -> None:
    assert clocks(SUM, "st.global.b32 [%rd1], %r9;") == ARITHMETIC_LATENCY


def test_what_other_threads_store_is_there_behind_a_barrier() -> None:
    """No register says that what is read from shared memory depends on what was loaded before the barrier."""
    store, load = "st.shared.b32 [%rd3], %r1;", "ld.shared.b32 %r4, [%rd4];"
    assert clocks(*LOADS, store, load) == GLOBAL_LATENCY
    assert clocks(*LOADS, store, "bar.sync 0;", load) == GLOBAL_LATENCY + SHARED_LATENCY


def test_every_iteration_waits() -> None:
    """The sum of the loop waits for its load; what counts the iterations waits beside."""
    assert clocks(LOOP) == 40 * (GLOBAL_LATENCY + ARITHMETIC_LATENCY)


@pytest.mark.parametrize("pending", [0, 1, 3])
def test_copies_under_way_shorten_the_wait(pending: int) -> None:
    assert clocks(f"cp.async.wait_group {pending};") == GLOBAL_LATENCY / (1 + pending)
