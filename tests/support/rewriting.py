"""Programs before and after a rewrite: what the tests of program rewrites share."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import iree.runtime as rt
import numpy as np
import pytest
from iree.compiler import ir
from iree_cases import FLAGS

from mlir_sched.compiler import ModelCompileError, compile_to_bytes
from mlir_sched.compiler.flags import library_flags
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.library.library import build_library
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.repair.repaired import wrong_forms
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.variants.rewritten import RewrittenVariants, rewriting
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context


def write(folder: Path, text: str) -> Path:
    path = folder / "model.mlir"
    path.write_text(text)
    return path


def compiled_to(model: Path, flags: tuple[str, ...], phase: str) -> str:
    command = [str(iree_compile_path()), *flags, str(model), f"--compile-to={phase}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def abi(model: Path) -> str:
    return compiled_to(model, FLAGS, "abi")


def rewritten_variants(model: Path, target: Target) -> RewrittenVariants:
    with rewriting(model, target) as rewritten:
        return rewritten()


def applies(made: ProgramRewrite | Plan, model: Path) -> bool:
    with script_context(), ir.Location.unknown():
        return pipeline.applies(steps_of(made), StagedProgram(ir.Module.parse(abi(model))))


def library_for(made: ProgramRewrite | Plan, model: Path, folder: Path) -> tuple[str, ...]:
    """Write a library that makes one rewrite, or those of a plan, and return the flags that use it."""
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(abi(model)))
        script = pipeline.script(steps_of(made), program, made.name)
        assert wrong_forms(pipeline.rewritten(steps_of(made), program)) == (), "IREE compiles the program wrong"
    path = folder / "library.mlir"
    path.write_text(build_library([], script))
    return (*FLAGS, *library_flags(path))


def left_out(rewrites: Sequence[ProgramRewrite], model: Path, target: Target) -> Mapping[str, str]:
    """Return why rewrites of a program, each alone, are no rivals of the program as it is, by the names of those."""
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(abi(model)))
        variants = [Variant(Plan((made,)), pipeline.script((made,), program, made.name)) for made in rewrites]
    with MeasuredPrograms.open(Source(model, target), RunnerOptions.for_device(target.driver).first_look) as programs:
        default = programs.first(programs.build(Variant(Plan())))
        attempts = [programs.attempt(variant, default.model) for variant in variants]
        built = [attempt.built for attempt in attempts if attempt.built is not None]
        assert len(built) == len(variants), [attempt.why for attempt in attempts]
        _, failed = programs.time([default, *built])
    return failed


def steps_of(made: ProgramRewrite | Plan) -> tuple[ProgramRewrite, ...]:
    return made.steps if isinstance(made, Plan) else (made,)


def run(vmfb: bytes, inputs: Sequence[np.ndarray | float], name: str = "main", weights: str | Path = "") -> np.ndarray:
    """Return the result of a program's function; its parameters, if any, are those of a file, in the scope model."""
    modules, config = [], rt.Config("local-sync")
    if weights:
        index = rt.ParameterIndex()
        index.load(str(weights))
        modules.append(rt.create_io_parameters_module(config.vm_instance, index.create_provider(scope="model")))
    modules.append(rt.VmModule.copy_buffer(config.vm_instance, vmfb))
    loaded = rt.load_vm_modules(*modules, config=config)
    result = loaded[-1][name](*inputs)
    return np.array(result.to_host())  # its memory is the program's, which ends here


def assert_refused(rewrite: ProgramRewrite, own: str, other: str, folder: Path) -> None:
    """Assert that the library of a rewrite for a program does not compile another program."""
    flags = library_for(rewrite, write(folder, own), folder)
    assert other != own
    with pytest.raises(ModelCompileError):
        compile_to_bytes(write(folder, other), flags)


def assert_same_results(
    model: Path, flags: tuple[str, ...], inputs: Sequence[np.ndarray | float], *, least: int
) -> None:
    """Assert that a program computes the same with other flags, and more different numbers than ``least``."""
    expected = run(compile_to_bytes(model, FLAGS), inputs)
    assert np.unique(expected).size > least
    np.testing.assert_array_equal(run(compile_to_bytes(model, flags), inputs), expected)
