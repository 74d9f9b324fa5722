"""How many legal candidates for CUDA compile and are assembled, and what the model says of the best; needs no GPU.

Usage: ``python benchmarks/cuda_assembly.py [--traces 500] [--target cuda:sm_80 ...] [--model MODEL.mlir ...]``. Per
model, the untuned code of its first dispatch with sketches, and random legal candidates of every sketch, are compiled,
assembled by ptxas, and estimated. Goal: 95 % of the candidates without an error or a warning, no spills in the best,
and for the best at least the occupancy of the untuned code or fewer bytes moved.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mlir_sched.assembly.estimate import Estimate, estimate
from mlir_sched.assembly.ptx import PtxError, device_code, read_kernel
from mlir_sched.assembly.ptxas import AssemblyError, Resources, assemble, find_assembler
from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import absent_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task

MODELS = Path(__file__).parent / "models"
NAMES = (
    *("matmul_256", "matmul_1024", "batch_matmul", "vecmat_4096", "conv2d", "depthwise_conv2d"),
    *("softmax", "layernorm", "norm", "elementwise_1m"),
)


@dataclass(frozen=True)
class Assembled:
    """A candidate, or the untuned code, that was assembled."""

    sketch: str
    resources: Resources
    estimate: Estimate


def assembled(task: Task, target: Target, sketch: str, result: CompileResult) -> Assembled | str:
    """Return what is known of compiled code, or why it cannot be assembled or estimated."""
    if result.vmfb is None or result.launch is None:
        return str(result.failure.kind) if result.failure else "its launch depends on values"
    assert target.gpu_resources is not None
    footprint = sum(tensor.bytes for tensor in (*task.inputs, *task.outputs))
    try:
        code = device_code(result.vmfb)
        resources = assemble(find_assembler(), code, target.assembler)
        found = estimate(read_kernel(code), resources, result.launch, target.gpu_resources, footprint_bytes=footprint)
    except (AssemblyError, PtxError) as error:
        return str(error).partition(":")[0]
    return Assembled(sketch, resources, found)


def candidates(task: Task, target: Target, count: int) -> Iterator[Assembled | str]:
    """Yield the untuned code, then ``count`` candidates, as each is done."""
    assert task.dispatch is not None
    space, rng = DesignSpace(Space.default(target), task.dispatch, target), np.random.default_rng(0)
    sketches = [space.sketches[number % len(space.sketches)] for number in range(count)]
    scripts = [space.script(space.sample(rng, sketch)) for sketch in sketches]
    with CompilerPool(task.flags) as pool:
        for _, result in pool.compile(task.source, [None]):
            yield assembled(task, target, "untuned", result)
        for index, result in pool.compile(task.source, scripts):
            yield assembled(task, target, sketches[index], result)


def row(name: str, found: list[Assembled | str]) -> str:
    """Return the line of the table for a model."""
    untuned, *others = found
    good = [each for each in others if isinstance(each, Assembled)]
    why = Counter(each for each in others if isinstance(each, str))
    spilled = sum(each.resources.spilled_bytes > 0 for each in good)
    cells = [name, f"{len(good) / len(others):.1%}", f"{spilled}", ", ".join(f"{k} {n}" for k, n in why.items()) or "-"]
    whole = [each for each in good if not each.resources.spilled_bytes]
    for each in (untuned, min(whole, key=lambda each: each.estimate.seconds, default="none")):
        if isinstance(each, str):
            cells += [each, "-", "-", "-"]
        else:
            e = each.estimate
            cells += [f"{e.seconds * 1e6:.1f} us", f"{e.occupancy:.2f}", f"{e.moved_bytes / 1e6:.1f} MB", each.sketch]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", nargs="*", type=Path)
    parser.add_argument("--traces", type=int, default=500)
    parser.add_argument("--target", nargs="*", default=["cuda:sm_80", "cuda:sm_90"])
    arguments = parser.parse_args()
    models = arguments.model or [MODELS / f"{name}.mlir" for name in NAMES]
    for name in arguments.target:
        target = absent_target(name)
        print(f"{name}, {arguments.traces} candidates per model; estimates, nothing was run")
        print("| model | assembled | spilled | failed | untuned | occupancy | moved | | best | occupancy | moved | |")
        print("|---|---|---|---|---|---|---|---|---|---|---|---|")
        for model in models:
            tasks = [task for task in extract(model, target).tasks if task.dispatch is not None]
            sketched = [
                task for task in tasks if task.dispatch and Space.default(target).sketches(task.dispatch, target)
            ]
            if not sketched:
                print(f"| {model.stem} | no module schedules it |", flush=True)
                continue
            print(row(model.stem, list(candidates(sketched[0], target, arguments.traces))), flush=True)


if __name__ == "__main__":
    main()
