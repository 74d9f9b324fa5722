"""What modules share whose subgroups compute products of small matrices at once: tiles, threads, registers."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mlir_sched.targets.target import MatrixUnit
from mlir_sched.transform_scripts.common import by_one
from mlir_sched.transform_scripts.gpu.shared_memory import sample_step, shared_loops
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction, Loop

MAX_SUBGROUP_TILE = 128
"""Most rows, and most columns, of a subgroup's tile."""
MAX_WORKGROUP_TILE = 256
"""Most rows, and most columns, of a workgroup's tile."""
MAX_ACCUMULATORS = 128
"""Most results of one thread: half of its registers on NVIDIA's GPUs."""
MAX_UNITS = 128
"""Most units that a subgroup computes in one step of the reduction, which are unrolled."""
MAX_STEP = 64
"""Largest step of the reduction that is copied into shared memory."""


@dataclass(frozen=True)
class MatrixProduct:
    """A contraction that subgroups compute in whole units.

    Attributes:
        mm: The contraction.
        rows: Its loop over rows.
        unit: What a subgroup computes at once.
    """

    mm: Contraction
    rows: Loop
    unit: MatrixUnit


def matrix_product(mm: Contraction, units: Iterable[MatrixUnit]) -> MatrixProduct | None:
    """Return a contraction with the first unit that has its element types and divides its matrices.

    Returns:
        None where there is none, or where threads do not share what they read.
    """
    if mm.rows is None or not shared_loops(mm):
        return None
    loops = (mm.rows, mm.columns, mm.reduction)
    inputs = {operand.tensor.element_type for operand in mm.op.inputs}
    result = mm.op.outputs[0].tensor.element_type
    for unit in units:
        extents = (unit.rows, unit.columns, unit.reduction)
        whole = not any(loop.extent % extent for loop, extent in zip(loops, extents, strict=True))
        if whole and inputs == {unit.inputs} and result == unit.result:
            return MatrixProduct(mm, mm.rows, unit)
    return None


@dataclass(frozen=True)
class MatrixTiles:
    """How a product is divided.

    Attributes:
        workgroup, subgroup: The tiles of both, by loop, outermost first; of a batch, they hold one matrix.
        step: The step of the reduction that is copied into shared memory.
        threads: Threads of a workgroup.
    """

    workgroup: dict[Loop, int]
    subgroup: dict[Loop, int]
    step: int
    threads: int


def sample_matrix_tiles(s: Schedule, product: MatrixProduct) -> MatrixTiles:
    """Draw how a product is divided, and check the tiles against the device's limits.

    Raises:
        IllegalTraceError: The device does not run such workgroups, threads do not copy a step in equal parts, or a
            subgroup takes too many registers or instructions.
    """
    workgroup, subgroup = _sample_subgroups(s, product)
    threads = _threads(s, workgroup, subgroup)
    step = sample_step(s, product.mm, workgroup, threads, most=MAX_STEP, unit=product.unit.reduction)
    _check_subgroup(s, product, subgroup, step)
    return MatrixTiles(workgroup, subgroup, step, threads)


def _sample_subgroups(s: Schedule, product: MatrixProduct) -> tuple[dict[Loop, int], dict[Loop, int]]:
    units = {product.rows: product.unit.rows, product.mm.columns: product.unit.columns}
    loops = shared_loops(product.mm)
    workgroup, subgroup = by_one(loops), by_one(loops)
    for loop in (loop for loop in loops if loop in units):
        workgroup[loop], subgroup[loop] = s.sample_tiles(
            f"tile_{loop.name}", loop, 2, most=MAX_SUBGROUP_TILE, unit=units[loop], most_outermost=MAX_WORKGROUP_TILE
        )
    return workgroup, subgroup


def _threads(s: Schedule, workgroup: Mapping[Loop, int], subgroup: Mapping[Loop, int]) -> int:
    """Return the threads of a workgroup, and refuse more than a device runs."""
    assert s.target.gpu is not None
    count, most = math.prod(workgroup[loop] // subgroup[loop] for loop in workgroup), s.target.gpu.workgroup_threads
    threads = count * s.target.gpu.subgroup_size
    s.require(threads <= most, f"{threads} threads per workgroup > {most}")
    s.notes["threads"] = threads
    return threads


def _check_subgroup(s: Schedule, product: MatrixProduct, subgroup: Mapping[Loop, int], step: int) -> None:
    """Refuse tiles of a subgroup that take too many registers or instructions, and note both."""
    assert s.target.gpu is not None
    rows, columns, unit = subgroup[product.rows], subgroup[product.mm.columns], product.unit
    held = rows * columns // s.target.gpu.subgroup_size
    s.require(held <= MAX_ACCUMULATORS, f"{held} results per thread are more than {MAX_ACCUMULATORS}")
    count = (rows // unit.rows) * (columns // unit.columns) * (step // unit.reduction)
    s.require(count <= MAX_UNITS, f"{count} products of matrices in a step are more than {MAX_UNITS}")
    s.notes["accumulator_registers"], s.notes["unrolled_vectors"] = held, count
