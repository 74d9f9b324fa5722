"""IREE's own CPU pipeline with other tile sizes: the script sets a ``lowering_config`` and IREE does the rest.

Source: IREE 3.13 ``#iree_cpu.lowering_config`` and ``#iree_cpu.pipeline<DoubleTilingExpert>``
(LLVMCPU/KernelDispatch.cpp); the meaning of the lists is that of ``IREECPUAttrs.td``.
"""

import math
from collections.abc import Mapping
from typing import ClassVar

from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.extents import floor_power_of_two, powers_of_two
from mlir_sched.transform_scripts.module import DelegatingModule, ScheduleProgram
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Loop, contiguous_loop, parallel_loops, reduction_loops
from mlir_sched.transform_scripts.tracking.nest import size_list

MAX_REGISTER_ROWS = 16
MAX_VECTORS = 256
"""Most vector registers that the iterations of one register tile would fill; IREE 3.13 refuses 512 as "large vector
sizes". Source: ``getMaxVectorSizeForLargeVectorCheck`` of IREE's ``LLVMCPU/Utils.cpp``."""


class LoweringConfig(DelegatingModule):
    """A module that draws distribution, register and reduction tiles for IREE's DoubleTilingExpert pipeline."""

    name: ClassVar[str] = "lowering_config"
    backends: ClassVar[tuple[str, ...]] = ("llvm-cpu",)

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> LinalgOp | None:
        """Match the only reducing op of a dispatch."""
        del target
        reducing = [o for o in dispatch.ops if o.reduces]
        if dispatch.other_ops or len(reducing) != 1 or op.index != reducing[0].index:
            return None
        fits = op.parallel_dims and not op.has_windows and all(_fits(other, op) for other in dispatch.ops)
        return op if fits else None

    def programs(self) -> Mapping[str, ScheduleProgram]:
        """Return the one program."""
        return {"": configure}


def _fits(other: LinalgOp, op: LinalgOp) -> bool:
    """Say whether an op can share the reducing op's tiles: IREE tiles no loops that the reducing op does not have.

    IREE refuses an element-wise root with more loops (a normalisation) as "large vector sizes".
    """
    if other.kind is OpKind.OTHER:
        return False
    return other.kind is OpKind.FILL or len(other.parallel_dims) == len(op.parallel_dims)


def configure(s: Schedule, op: LinalgOp) -> None:
    """Annotate the reducing op, and choose the pipeline for the function.

    Register tiles are drawn first, from sizes that keep the results in registers, with chances in proportion to size.
    """
    lanes, free = s.lanes(op), s.max_accumulators
    loops = [loop for loop in parallel_loops(op) if loop.extent > 1]
    vector = contiguous_loop(op, loops)
    registers: dict[Loop, int] = {}
    for loop in sorted(loops, key=lambda loop: (loop is not vector, -loops.index(loop))):
        per_register = lanes if loop is vector else 1
        most = min(loop.extent, per_register * free, lanes * 4 if loop is vector else MAX_REGISTER_ROWS)
        sizes = powers_of_two(most)
        registers[loop] = s.sample_number(f"register_{loop.name}", sizes, weights=list(map(float, sizes)))
        free //= max(1, registers[loop] // per_register)
    distribution: dict[Loop, int] = {}
    for loop in loops:
        sizes = [size for size in powers_of_two(loop.extent) if size >= registers[loop]]
        ranks = [float(rank) for rank in range(1, len(sizes) + 1)]
        distribution[loop] = s.sample_number(f"distribution_{loop.name}", sizes, weights=ranks)
    *outer, reduction = reduction_loops(op)
    iterations = MAX_VECTORS * lanes // math.prod(registers.values())
    most = floor_power_of_two(max(1, min(64, reduction.extent, iterations)))
    step = s.sample_power_of_two("reduction_step", 1, most)
    s.notes["accumulator_registers"] = math.prod(
        max(1, size // lanes) if loop is vector else int(size) for loop, size in registers.items()
    )
    uneven = any(loop.extent % size for loop, size in registers.items())
    peel = uneven and s.sample_yes("peel", yes=2.0, no=1.0)
    s.notes["tail_peel"] = peel
    config = {
        "distribution": distribution,
        "vector_common_parallel": registers,
        "vector_reduction": {**dict.fromkeys(outer, 1), reduction: step},
    }
    options = ", {enable_loop_peeling}" if peel else ""
    pipeline = f"#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>{options}>"
    lists = ", ".join(f"{key} = {size_list(op, sizes)}" for key, sizes in config.items())
    levels = [*zip(("workgroup", "loop", "loop"), config.values(), strict=True)]
    s.delegate(op, f"#iree_cpu.lowering_config<{lists}>", pipeline, levels)
