"""Rewrites judged by the checks that every variant has to pass."""

from __future__ import annotations

from pathlib import Path

from iree.compiler import ir
from rewriting import abi, write

from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context


def checked(made: ProgramRewrite, text: str, folder: Path, here: Target) -> str:
    """Return why the rewrite of a program is no rival of the program as it is; empty where the numbers are right."""
    model = write(folder, text)
    with script_context(), ir.Location.unknown():
        script = pipeline.script((made,), StagedProgram(ir.Module.parse(abi(model))), made.name)
    options = RunnerOptions.for_device(here.driver).first_look
    with MeasuredPrograms.open(Source(model, here), options) as programs:
        default = programs.first(programs.build(Variant(Plan())))
        attempt = programs.attempt(Variant(Plan((made,)), script), default.model)
        assert attempt.built is not None, attempt.why
        _, failed = programs.time([default, attempt.built])
    return failed.get(made.name, "")
