"""Tuned folders of programs with decisions of their own, and a script for one dispatch, written without a search."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.program_space import ProgramSpace
from mlir_sched.program.variant import Variant
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tuned_folder.claim import Claim
from mlir_sched.tuned_folder.installation import EmittedFiles, install
from mlir_sched.tuned_folder.manifest import Source

SCRIPT = "tuned_0"
"""Symbol of the script."""
CLAIM = Claim(Source("", "model.mlir", "llvm-cpu"))


def tasks_under(model: Path, target: Target, variant: Variant) -> list[Task]:
    """Return the dispatches of a model under a variant that have linalg ops."""
    rewrite = build_library([], variant.rewrite)
    tasks = extract(model, target, (*TASK_FLAGS, *variant.plan.flags), rewrite).tasks
    return [task for task in tasks if task.dispatch is not None]


def install_program(
    folder: Path, target: Target, variant: Variant, sites: tuple[Site, ...], task: Task, space: DesignSpace, sketch: str
) -> None:
    """Write a folder of a variant, with a random script of a sketch for one of its tasks.

    Args:
        folder: Where to write; it does not exist.
        target: What the script is for.
        variant: The variant, with other algorithms for some sites or without.
        sites: The sites of the program that another algorithm can compute.
        task: The task that has the script.
        space: Its design space.
        sketch: The script's sketch.
    """
    trace = space.sample(np.random.default_rng(0), sketch)
    origin = {"dispatch": task.name, "task": task.key}
    sequences = [TunedSequence(SCRIPT, task.source, space, trace, origin, task.name)]
    program = ProgramSpace((Plan(), variant.plan.base), sites).trace_of(variant.plan)
    library = build_library(sequences, variant.rewrite, program=program, emission=lambda _: "abc")
    summary = {
        "target": target.name,
        "threads": 1,
        "emission": "abc",
        "program": {"decisions": program.values, "gained": False, "device": "local-sync"},
        "dispatches": [{"name": task.name, "symbol": SCRIPT, "decisions": trace.values}],
    }
    folder.mkdir()
    install(
        folder.resolve(),
        CLAIM,
        EmittedFiles(library, (*target.flags, *TASK_FLAGS, *variant.plan.flags)),
        json.dumps(summary),
    )
