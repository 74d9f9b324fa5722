"""Contractions by dot-product instructions: bf16 x bf16 -> f32 (AVX512-BF16) and i8 x i8 -> i32 (AVX512-VNNI).

Such an instruction sums groups of 2 (bf16) or 4 (i8) neighbours of the reduction in each lane, so the operand with the
vector dimension has to hold these neighbours side by side. The script packs this operand block by block into a buffer
on the stack, and puts the instruction in place of the innermost loops (``dot_product_kernel.py``), as TVM's
``tensorize`` does. LLVM makes neither instruction from the code of ``contraction.py``.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS and VPDPBUSD; MetaSchedule's
"Use-Tensor-Core" module (Shao et al., "Tensor Program Optimization with Probabilistic Programs", 2022).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, Operand
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.common import by_one
from mlir_sched.transform_scripts.llvm_cpu.dot_product_kernel import INSTRUCTIONS, LANES, DotProductInstruction, kernel
from mlir_sched.transform_scripts.module import ScheduleModule
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop

MAX_ROWS = 16
MAX_VECTORS_PER_ROW = 8
SCRATCH_REGISTERS = 2
"""Registers beside the accumulators and one row of the packed operand: a broadcast group, and the sign bits of i8."""
MIN_ROWS = 4
"""Rows below which packing costs as much as it saves: every packed element is used once per row."""


@dataclass(frozen=True)
class DotProductContraction:
    """A contraction that a dot-product instruction computes."""

    mm: Contraction
    rows: Loop
    instruction: DotProductInstruction


class DotProduct(ScheduleModule):
    """A module that computes contractions of bf16 or i8 with the dot-product instructions of AVX-512, if available."""

    name: ClassVar[str] = "dot_product"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> DotProductContraction | None:
        """Match [fill,] contraction [, element-wise ops on its result] where whole instructions cover the contraction.

        There are then no tails. The reduction has to be contiguous in the rows' input, so that its groups lie side by
        side, and there have to be at least :data:`MIN_ROWS` rows.
        """
        mm, instruction = matchers.contraction(op, dispatch), instruction_for(op, target)
        if mm is None or instruction is None or mm.rows is None or mm.rows.extent < MIN_ROWS:
            return None
        whole = mm.columns.extent % LANES == 0 and mm.reduction.extent % instruction.group == 0
        simple = all(operand.is_projected_permutation for operand in (*op.inputs, *op.outputs))
        if not (whole and simple and _input_with(mm, mm.rows).loops[-1] == mm.position(mm.reduction)):
            return None
        return DotProductContraction(mm, mm.rows, instruction)

    def schedule(self, s: Schedule, found: DotProductContraction) -> None:
        """Pack the operand with the vector dimension block by block, and compute register tiles with the instruction.

        After: ``for columns_c: { fill; for k_c: { pack; for rows_r, columns_r: kernel over k_c }; epilogues }``.
        """
        mm, instruction = found.mm, found.instruction
        cache_columns, columns = s.sample_tiles("columns", mm.columns, 2, most=MAX_VECTORS_PER_ROW * LANES, unit=LANES)
        rows = s.sample_tile("rows", found.rows, most=MAX_ROWS)
        block = s.sample_tile("reduction", mm.reduction, unit=instruction.group)
        outer = {found.rows: s.extent(found.rows), mm.columns: cache_columns}
        tile = {found.rows: rows, mm.columns: columns}
        still = [loop for loop in mm.tiled if tile[loop] == outer[loop]]
        order = s.sample_order("register_order", mm.tiled, still=still)
        vectors = columns // LANES
        registers = rows * vectors + vectors + SCRATCH_REGISTERS
        s.require(registers <= s.target.vector_registers, f"{rows}x{columns} accumulators take {registers} registers")
        _check_stack(s, found, block * cache_columns, s.extent(found.rows) * cache_columns)
        s.notes["accumulator_registers"] = rows * vectors

        s.tile(mm.root, by_one(mm.others), order=mm.others, fuse=True)
        s.tile(mm.root, {mm.columns: cache_columns}, fuse=True)
        _vectorize_beside(s, mm, tile)
        s.tile(mm.op, by_one(mm.outer_reductions))
        s.tile(mm.op, {mm.reduction: block})
        _pack(s, mm, instruction)
        s.tile(mm.op, tile, order=order)
        s.tensorize(mm.op, kernel(mm, s.tile_of(mm.op), instruction))


def instruction_for(op: LinalgOp, target: Target) -> DotProductInstruction | None:
    """Return the instruction that computes a multiply-accumulate op's body on the target, or None."""
    types = tuple(operand.tensor.element_type for operand in (*op.inputs, *op.outputs))
    for instruction in INSTRUCTIONS:
        has_it = f"+{instruction.feature}" in target.description
        if has_it and types == instruction.types and sorted(op.body) == sorted(instruction.body):
            return instruction
    return None


def _input_with(mm: Contraction, loop: Loop) -> Operand:
    """Return the input that a loop walks."""
    return next(operand for operand in mm.op.inputs if mm.position(loop) in operand.dims)


def _check_stack(s: Schedule, found: DotProductContraction, packed: int, result: int) -> None:
    """Refuse tiles whose temporaries exceed the stack: the packed block, and the result that epilogues read."""
    op, epilogues = found.mm.op, found.mm.epilogues
    s.require_stack(packed * op.inputs[0].tensor.element_bytes + len(epilogues) * result * op.element_bytes)


def _vectorize_beside(s: Schedule, mm: Contraction, tile: Mapping[Loop, int]) -> None:
    """Tile the fill row by row and the epilogues by the register tile, and vectorize them."""
    if mm.fill is not None:
        s.tile(mm.fill, {**by_one((*mm.others, *tile)), mm.columns: tile[mm.columns]})
        s.vectorize(mm.fill)
    for op in mm.epilogues:
        s.tile(op, tile)
        s.vectorize(op)


def _pack(s: Schedule, mm: Contraction, instruction: DotProductInstruction) -> None:
    """Make groups of the reduction innermost: in a copy of the columns' operand, and in a view of the other operand."""
    s.pack(
        mm.op,
        {mm.reduction: instruction.group},
        operand=_input_with(mm, mm.columns),
        order=(mm.reduction, mm.columns),
        copy={mm.columns: LANES},
    )
