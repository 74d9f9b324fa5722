"""What threads execute is counted, and where they access memory is computed, without running anything."""

from __future__ import annotations

import pytest
from gpu_model.kernels import LOOP, ptx, rows

from mlir_sched.gpu_model.execution import Threads
from mlir_sched.gpu_model.ptx import PtxError, read_kernel


def executed(body: str, opcode: str, thread: int = 0) -> int:
    kernel = read_kernel(ptx(body))
    counts = Threads(kernel).execute((thread, 0, 0)).counts
    return sum(count for count, i in zip(counts, kernel.instructions, strict=True) if i.opcode.startswith(opcode))


def test_a_loop_is_counted_with_unsigned_comparison() -> None:
    assert executed(LOOP, "fma") == 40
    assert executed(LOOP, "st.global") == 1


def test_nested_loops_multiply() -> None:
    nested = """
	mov.b64 	%rd1, 0;
$OUTER:
	mov.b32 	%r1, 12;
$INNER:
	fma.rn.f32 	%r9, %r9, %r9, %r9;
	add.s32 	%r1, %r1, -4;
	setp.ne.b32 	%p1, %r1, 0;
	@%p1 bra 	$INNER;
	add.s64 	%rd1, %rd1, 1;
	setp.lt.s64 	%p2, %rd1, 5;
	@%p2 bra 	$OUTER;"""
    assert executed(nested, "fma") == 15


SKIPPED = """
	mov.u32 	%r1, %tid.x;
	setp.gt.u32 	%p1, %r1, 7;
	@%p1 bra 	$END;
	fma.rn.f32 	%r9, %r9, %r9, %r9;
$END:
	mov.b32 	%r2, 0;"""


@pytest.mark.parametrize(("thread", "times"), [(7, 1), (8, 0)])
def test_a_branch_on_the_thread_is_taken_by_the_threads_that_take_it(thread: int, times: int) -> None:
    assert executed(SKIPPED, "fma", thread) == times


def test_a_branch_on_data_is_not_taken() -> None:
    loaded = rows(4) + "\n\tsetp.eq.b32 %p1, %r9, 0;\n\t@%p1 bra $END;\n\tfma.rn.f32 %r8, %r8, %r8, %r8;\n$END:"
    assert executed(loaded, "fma") == 1


def test_a_register_of_a_loaded_vector_is_unknown() -> None:
    loaded = "ld.global.v2.b32 {%r1, %r2}, [%rd1];\n\tsetp.eq.b32 %p1, %r1, 0;\n\t@%p1 bra $END;"
    body = f"\tmov.b32 %r1, 0;\n\t{loaded}\n\tfma.rn.f32 %r8, %r8, %r8, %r8;\n$END:\n\tmov.b32 %r3, 0;"
    assert executed(body, "fma") == 1, "the branch is not taken for the value that %r1 had before"


def test_a_loop_without_a_known_end_is_refused() -> None:
    with pytest.raises(PtxError, match="no known end"):
        executed("$FOREVER:\n\tmov.b32 %r1, 0;\n\tbra $FOREVER;", "mov")


def test_addresses_are_those_of_the_first_iteration_relative_to_the_parameters() -> None:
    kernel = read_kernel(ptx(rows(48)))
    threads = Threads(kernel)
    load = next(i for i, each in enumerate(kernel.instructions) if each.opcode.startswith("ld.global"))
    first, third = (threads.first_addresses((lane, 0, 0))[load] for lane in (0, 2))
    assert third - first == 96


def test_a_lane_is_the_number_of_a_thread_in_its_warp() -> None:
    kernel = read_kernel(ptx("\tmov.u32 %r1, %laneid;\n\tld.global.b32 %r3, [%r1];", size="24, 4, 1"))
    lanes = [[*Threads(kernel).first_addresses(thread).values()] for thread in ((23, 0, 0), (0, 1, 0), (8, 1, 0))]
    assert lanes == [[23], [24], [0]]


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("shl.b32 %r2, %r1, 31;", 1 << 31),
        ("shr.s32 %r2, -8, 1;", 0xFFFFFFFC),
        ("mul.hi.u32 %r2, 65536, 131072;", 2),
        ("mad.lo.s32 %r2, %r1, 6, 7;", 13),
        ("selp.b32 %r2, 4, 5, 0;", 5),
        ("rem.u32 %r2, 17, 5;", 2),
        ("rem.s32 %r2, -17, 5;", 0xFFFFFFFE),
        ("div.s32 %r2, -17, 5;", 0xFFFFFFFD),
        ("div.u64 %r2, 9007199254740993, 1;", 9007199254740993),
        ("rem.u64 %r2, 9007199254740993, 9007199254740993;", 0),
        ("not.b32 %r2, 0;", 0xFFFFFFFF),
        ("cvt.s64.s32 %r2, -1;", (1 << 64) - 1),
        ("max.s32 %r2, -1, %r1;", 1),
    ],
)
def test_arithmetic_of_addresses(code: str, wanted: int) -> None:
    body = f"\tmov.b32 %r1, 1;\n\t{code}\n\tld.global.b32 %r3, [%r2];"
    kernel = read_kernel(ptx(body))
    (address,) = Threads(kernel).first_addresses((0, 0, 0)).values()
    assert address == wanted
