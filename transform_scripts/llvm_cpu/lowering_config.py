"""IREE's own CPU pipeline under other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13 ``#iree_cpu.lowering_config`` and ``#iree_cpu.pipeline<DoubleTilingExpert>``
(LLVMCPU/KernelDispatch.cpp); the meaning of the lists is that of ``IREECPUAttrs.td``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.common.extents import (
    ACCUMULATOR_SHARE,
    element_bytes,
    floor_power_of_two,
    innermost_output_loop,
    powers_of_two,
    sizes_for,
    vector_elements,
)
from mlir_sched.transform_scripts.llvm_cpu.reduction import reduces
from mlir_sched.transform_scripts.module import Sketch, Stage, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule, TiledOp, product

MAX_REGISTER_ROWS = 16
MAX_VECTOR_BYTES = 16384
"""Bytes of one register tile's iterations; IREE 3.13 refuses 32768 as "large vector sizes" and accepts 16384."""


class LoweringConfig(TransformModule):
    """Draws distribution, register and reduction tiles for IREE's DoubleTilingExpert pipeline."""

    name: ClassVar[str] = "lowering_config"
    stage: ClassVar[Stage] = Stage.LOWER
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        """Add one program for a dispatch with exactly one reducing op."""
        del target
        reducing = [o for o in dispatch.ops if reduces(o)]
        if sketch.steps or dispatch.other_ops or len(reducing) != 1 or op.index != reducing[0].index:
            return (sketch,)
        if not op.parallel_dims or op.has_windows or not all(_fits(other, op) for other in dispatch.ops):
            return (sketch,)
        step = self.step(lambda s: configure(s, op))
        return (sketch, sketch.extended(self.name, step, claimed=tuple(o.index for o in dispatch.ops), complete=True))


def _fits(other: LinalgOp, op: LinalgOp) -> bool:
    """Say whether an op can share the reducing op's tiles: IREE does not tile loops that the latter does not have.

    An element-wise root with more loops (a normalisation) ends as "large vector sizes".
    """
    if other.kind is OpKind.OTHER:
        return False
    return other.kind is OpKind.FILL or len(other.parallel_dims) == len(op.parallel_dims)


def configure(s: Schedule, op: LinalgOp) -> None:
    """Annotate the reducing op and the ops beside it, and choose the pipeline for the function.

    Register tiles are drawn first, in proportion to their sizes and from what leaves the results in registers.
    """
    columns, lanes = innermost_output_loop(op), vector_elements(op, s.target)
    free = int(s.target.vector_registers * ACCUMULATOR_SHARE)
    loops = [loop for loop in op.parallel_dims if op.extents[loop] > 1]
    registers: dict[int, int] = {}
    for loop in sorted(loops, key=lambda loop: (loop != columns, -loop)):
        per_register = lanes if loop == columns else 1
        most = min(op.extents[loop], per_register * free, lanes * 4 if loop == columns else MAX_REGISTER_ROWS)
        sizes = powers_of_two(most)
        registers[loop] = s.sample_number(f"register_{loop}", sizes, weights=list(map(float, sizes)))
        free //= max(1, registers[loop] // per_register)
    distribution: dict[int, int] = {}
    for loop in loops:
        sizes = [size for size in powers_of_two(op.extents[loop]) if size >= registers[loop]]
        ranks = [float(rank) for rank in range(1, len(sizes) + 1)]
        distribution[loop] = s.sample_number(f"distribution_{loop}", sizes, weights=ranks)
    reduction = op.reduction_dims[-1]
    iterations = MAX_VECTOR_BYTES // (product(list(registers.values())) * element_bytes(op))
    step = s.sample_power_of_two(
        "reduction_step", 1, floor_power_of_two(max(1, min(64, op.extents[reduction], iterations)))
    )
    s.notes["accumulator_registers"] = product(
        [max(1, size // lanes) if loop == columns else int(size) for loop, size in registers.items()]
    )
    peel = any(op.extents[loop] % size for loop, size in registers.items())
    config = {
        "distribution": sizes_for(op, distribution),
        "vector_common_parallel": sizes_for(op, registers),
        "vector_reduction": sizes_for(op, dict.fromkeys(op.reduction_dims[:-1], 1) | {reduction: step}),
    }
    s.emit.annotate(s.ops[op.index].handle, "lowering_config", _config(config))
    if peel:
        peel = s.sample_choice("peel", ("yes", "no"), weights=(2.0, 1.0)) == "yes"
    options = ", {enable_loop_peeling}" if peel else ""
    s.notes["edges_peel"] = peel
    s.emit.annotate(
        None,
        "translation_info",
        f"#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>{options}>",
    )
    _note_nest(s, op, config)


def _note_nest(s: Schedule, op: LinalgOp, config: dict[str, list[int]]) -> None:
    nest = TiledOp(None, op, op.extents)
    for kind, key in (("workgroup", "distribution"), ("loop", "vector_common_parallel"), ("loop", "vector_reduction")):
        nest = nest.tiled(None, kind, config[key])
    s.finish(nest)


def _config(lists: dict[str, list[int]]) -> str:
    text = ", ".join(f"{key} = [{', '.join(str(int(size)) for size in sizes)}]" for key, sizes in lists.items())
    return f"#iree_cpu.lowering_config<{text}>"
