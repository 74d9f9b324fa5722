"""Contractions by dot-product instructions: bf16 x bf16 -> f32 (AVX512-BF16) and i8 x i8 -> i32 (AVX512-VNNI).

Such an instruction sums groups of 2 (bf16) or 4 (i8) neighbours of the reduction in each lane, so that the operand
with the vector dimension has to hold those neighbours side by side. The script packs it block by block into a buffer
on the stack, and puts the instruction in place of the innermost loops (``dot_product_kernel.py``), as TVM's
``tensorize`` does. LLVM makes neither instruction of the generic module's code.

Source: Intel 64 and IA-32 Architectures Software Developer's Manual, VDPBF16PS and VPDPBUSD; MetaSchedule's
"Use-Tensor-Core" module (Shao et al., "Tensor Program Optimization with Probabilistic Programs", 2022).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, Operand
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.clean_up import clean_up
from mlir_sched.transform_scripts.common.contraction import Nest, loops_of_root, match, tile_by_one
from mlir_sched.transform_scripts.common.extents import sizes_for
from mlir_sched.transform_scripts.llvm_cpu.dot_product_kernel import INSTRUCTIONS, LANES, Instruction, kernel
from mlir_sched.transform_scripts.module import Sketch, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule, TiledOp

MAX_ROWS = 16
MAX_VECTORS_PER_ROW = 8
SCRATCH_REGISTERS = 2
"""Registers beside the accumulators and one row of the packed operand: a broadcast group, and the sign bits of i8."""
MIN_ROWS = 4
"""Rows below which packing costs as much as it saves: every packed element is used once per row."""


class DotProduct(TransformModule):
    """Computes contractions of bf16 or i8 with the dot-product instructions of AVX-512, where the target has them."""

    name: ClassVar[str] = "dot_product"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Add a sketch for a dispatch of [fill,] contraction [, element-wise ops on its result] that suits."""
        nest = match(op, dispatch)
        instruction = instruction_for(op, target)
        if sketch.steps or nest is None or instruction is None or not _fits(op, nest, instruction):
            return (sketch,)
        step = self.step(lambda s: schedule(s, nest, instruction))
        claimed = tuple(o.index for o in dispatch.ops)
        return (sketch, sketch.extended(self.name, step, claimed=claimed, parallel=dispatch.root.parallel_dims))


def instruction_for(op: LinalgOp, target: Target) -> Instruction | None:
    """Return the instruction that computes a multiply-accumulate op's body on the target, or None."""
    types = tuple(operand.tensor.element_type for operand in (*op.inputs, *op.outputs))
    for instruction in INSTRUCTIONS:
        has_it = f"+{instruction.feature}" in target.description
        if has_it and types == instruction.types and sorted(op.body) == sorted(instruction.body):
            return instruction
    return None


def schedule(s: Schedule, nest: Nest, instruction: Instruction) -> None:
    """Pack the operand with the vector dimension block by block, and compute register tiles by the instruction.

    After: ``for columns_c: { fill; for k_c: { pack; for rows_r, columns_r: kernel over k_c }; epilogues }``.
    """
    roles, group = nest.roles, instruction.group
    assert roles.rows is not None
    contraction = s.ops[nest.contraction]
    rows_extent, reduction_extent = contraction.tile[roles.rows], contraction.tile[roles.reduction]
    cache_columns, columns = s.sample_perfect_tile(
        "columns", contraction.tile[roles.columns], 2, max_innermost=MAX_VECTORS_PER_ROW * LANES, multiple_of=LANES
    )
    (rows,) = s.sample_perfect_tile("rows", rows_extent, 1, max_innermost=MAX_ROWS)
    (block,) = s.sample_perfect_tile("reduction", reduction_extent, 1, multiple_of=group)
    order = s.sample_permutation("register_order", ("rows", "columns"))
    vectors = columns // LANES
    registers = rows * vectors + vectors + SCRATCH_REGISTERS
    s.require(registers <= s.target.vector_registers, f"{rows}x{columns} accumulators take {registers} registers")
    _check_stack(s, nest, instruction, block * cache_columns, rows_extent * cache_columns)
    s.notes["accumulator_registers"] = rows * vectors

    root_index = nest.epilogues[-1] if nest.epilogues else nest.contraction
    to_root = loops_of_root(s, nest, root_index)
    outer: list[tuple[int, int]] = [*((loop, 1) for loop in roles.others), (roles.columns, cache_columns)]
    for loop, size in outer:
        root = s.ops[root_index]
        s.fuse_producers(root, sizes_for(root.op, {to_root[loop]: size}))
    clean_up(s)
    s.rematch()
    tile: dict[int, int] = {roles.rows: rows, roles.columns: columns}
    _vectorize_beside(s, nest, tile)

    op, _ = tile_by_one(s, s.ops[nest.contraction], roles.outer_reductions)
    op, _ = s.tile(op, sizes_for(op.op, {roles.reduction: block}))
    op = _pack(s, op, nest, instruction)
    for name in order:
        loop = roles.rows if name == "rows" else roles.columns
        op, _ = s.tile(op, sizes_for(op.op, {loop: tile[loop]}))
    clean_up(s)
    s.emit.replace_by_function(s.emit.match_ops(["linalg.generic"]), kernel(op.op, op.tile, roles, instruction))
    s.finish(op)


def _fits(op: LinalgOp, nest: Nest, instruction: Instruction) -> bool:
    """Say whether whole instructions cover the op: no edges, and groups of the reduction side by side in the rows."""
    roles = nest.roles
    if roles.rows is None or op.extents[roles.rows] < MIN_ROWS:
        return False
    whole = op.extents[roles.columns] % LANES == 0 and op.extents[roles.reduction] % instruction.group == 0
    simple = all(operand.is_projected_permutation for operand in (*op.inputs, *op.outputs))
    return whole and simple and _innermost(_with(op, roles.rows)) == roles.reduction


def _with(op: LinalgOp, loop: int) -> Operand:
    """Return the input that a loop walks."""
    return next(operand for operand in op.inputs if loop in operand.dims)


def _innermost(operand: Operand) -> int:
    return operand.indexing_map[-1].dims[0]


def _check_stack(s: Schedule, nest: Nest, instruction: Instruction, packed: int, result: int) -> None:
    """The packed block and what epilogues read live on the stack."""
    size = packed * instruction.bytes + len(nest.epilogues) * result * instruction.result_bytes
    s.require(size <= s.target.stack_bytes, f"temporaries of {size} bytes are above {s.target.stack_bytes}")


def _vectorize_beside(s: Schedule, nest: Nest, tile: dict[int, int]) -> None:
    """Tile fill and epilogues like the result's register tile and vectorize them."""
    contraction = s.dispatch.ops[nest.contraction]
    if nest.fill is not None:
        fill = s.ops[nest.fill]
        result = [expr.dims[0] for expr in contraction.outputs[0].indexing_map]
        sizes = [tile[loop] if loop == nest.roles.columns else 1 for loop in result]
        tiled, _ = s.tile(replace(fill, handle=s.emit.match_ops(["linalg.fill"])), sizes)
        s.vectorize(tiled)
    for index in nest.epilogues:
        loops = loops_of_root(s, nest, index)
        sizes = sizes_for(s.ops[index].op, {loops[loop]: size for loop, size in tile.items()})
        tiled, _ = s.tile(s.ops[index], sizes)
        s.vectorize(tiled)


def _pack(s: Schedule, op: TiledOp, nest: Nest, instruction: Instruction) -> TiledOp:
    """Put groups of the reduction innermost: a copy of the vector operand's block, and only a view of the other."""
    roles = nest.roles
    sizes = sizes_for(op.op, {roles.reduction: instruction.group})
    packed = s.emit.pack(op.handle, sizes)
    operand = _with(op.op, roles.columns)
    dims = [expr.dims[0] for expr in operand.indexing_map]
    row, column = dims.index(roles.reduction), dims.index(roles.columns)
    if row > column:
        order = list(range(len(dims)))
        order[row], order[column] = column, row
        dims[row], dims[column] = dims[column], dims[row]
        packed = s.emit.transpose_pack(packed, op.op.inputs.index(operand), order)
    s.emit.lower_packs()
    clean_up(s)
    copies = s.emit.match_ops(["linalg.transpose"])
    copy, _ = s.emit.tile_using_for(copies, [LANES if loop == roles.columns else 1 for loop in dims])
    s.emit.vectorize(copy)
    return replace(op, handle=packed)
