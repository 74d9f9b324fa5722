"""What a worker does for :mod:`benchmarks.fuzz.networks.laboratory`: finds plans, and compiles and runs networks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir

from benchmarks.fuzz.draft import Array
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.compiler.operations import symbol_of
from mlir_sched.compiler.worker.session import ABI, END, START, Compilation, context
from mlir_sched.errors import CompilerError, FailureClass, ScriptError
from mlir_sched.library import RewriteScript
from mlir_sched.library.library import build_library
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.rewrites.pipeline import script
from mlir_sched.program.worker.rewriting import Rewritten, RewrittenPlans, Tried, plans_of, staged_program
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks.worker.extraction import apply_to_program

_MAIN, _FUNCTION = "main", "util.func"


@dataclass(frozen=True)
class Ran:
    """What became of a program.

    Attributes:
        outputs: What it returned; None where it failed.
        failure: How it failed; None where it did not.
        error: Why it failed: the compiler's diagnostics, or the error of the call.
    """

    outputs: tuple[Array, ...] | None
    failure: FailureClass | None = None
    error: str = ""


def offered(path: str, kind: str, cores: int) -> RewrittenPlans:
    """Return what can be made of a program; arguments as of ``rewritten_plans``.

    Beside every plan with a choice of algorithms comes each of its sites with the other one, and all of them.
    """
    with staged_program(path, kind) as program:
        found = plans_of(program, kind, cores)
        more, tried = list[Rewritten](), Tried(dict(found.refused), dict(found.raised))
        for plan in (each for own, _ in found.plans for each in _with_other_algorithms(own, found.sites)):
            with tried.noted(plan.name):
                more.append((plan, script(plan.steps, program, plan.name)))
    return found._replace(plans=(*found.plans, *more), refused=tried.refused, raised=tried.raised)


def _with_other_algorithms(plan: Plan, sites: Sequence[Site]) -> Iterator[Plan]:
    own = [site for site in sites if plan.has_choice(site)]
    yield from (plan.with_algorithms([site]) for site in own)
    if len(own) > 1:
        yield plan.with_algorithms(own)


def compiled_and_run(path: str, rewrite: RewriteScript | None, inputs: Sequence[Array]) -> Ran:
    """Compile a program without scripts, run it in this thread, and return what it returns.

    Args:
        rewrite: The script of its plan's rewrites; None for none.
    """
    stage = FailureClass.COMPILE_ERROR
    with context(), ir.Location.unknown(), Compilation() as compilation:
        try:
            compilation.load_file(path)
            compilation.run(START, ABI)
            module = compilation.module()
            if rewrite is not None:
                _apply(rewrite, module)
            compilation.load(module)
            compilation.run(ABI, END)
            stage = FailureClass.RUN_ERROR
            return Ran(_results(_loaded(compilation.bytecode())[_MAIN], inputs))
        except ScriptError as error:
            return Ran(None, FailureClass.SCRIPT_ERROR, str(error))
        except (CompilerError, RuntimeError) as error:
            return Ran(None, stage, str(error))


def run_together(
    path: str, rewrites: Sequence[RewriteScript | None], inputs: Sequence[Array]
) -> list[tuple[Array, ...]]:
    """Compile what scripts make of a program as functions of one module, and return what each of them returns.

    Scripts that make the same have one function. Dispatches that programs have in common are compiled once.

    Args:
        rewrites: The scripts; None for the program as it is.

    Raises:
        CompilerError: One of them is not compiled.
        ScriptError: A script does not apply.
        RuntimeError: One of them does not run.
    """
    with context(), ir.Location.unknown():
        with Compilation() as compilation:
            compilation.load_file(path)
            compilation.run(START, ABI)
            program = compilation.module()
        made = [program.clone().operation for _ in rewrites]
        for rewrite, each in zip(rewrites, made, strict=True):
            if rewrite is not None:
                _apply(rewrite, each)
        texts = [str(each) for each in made]
        distinct = dict(zip(texts, made, strict=True))
        with Compilation() as compilation:
            compilation.load(_joined([*distinct.values()]))
            compilation.run(ABI, END)
            module = _loaded(compilation.bytecode())
    found = {text: _results(module[f"{_MAIN}_{number}"], inputs) for number, text in enumerate(distinct)}
    return [found[text] for text in texts]


def _joined(programs: Sequence[Any]) -> Any:
    """Return the first of some programs with the functions of all; the program's number is behind each name."""
    for number, program in enumerate(programs):
        for function in _functions(program):
            name = symbol_of(function)
            ir.SymbolTable.replace_all_symbol_uses(name, f"{name}_{number}", program)
            ir.SymbolTable.set_symbol_name(function, f"{name}_{number}")
    first, *others = programs
    for function in (each for program in others for each in _functions(program)):
        function.clone(ir.InsertionPoint(first.regions[0].blocks[0]))
    return first


def _functions(program: Any) -> list[Any]:
    return [op.operation for op in program.regions[0].blocks[0] if op.operation.name == _FUNCTION]


def _apply(rewrite: RewriteScript, program: Any) -> None:
    """Rewrite a program.

    Raises:
        CompilerError: One of IREE's passes that the rewrite runs fails.
        ScriptError: The rewrite does not apply.
    """
    apply_to_program(build_library([], rewrite), program)
    if rewrite.mark not in rewrites_in(str(program)):
        raise ScriptError(f"the rewrite {rewrite.name} left no trace in the program")


def _loaded(vmfb: bytes) -> Any:
    config = _config()
    return rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, vmfb), config)


def _results(function: Any, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return what a function returns; it is called with zeros first, as its memory may hold another's right results."""
    function(*map(np.zeros_like, inputs))
    results = function(*inputs)
    several = results if isinstance(results, (tuple, list)) else (results,)
    return tuple(np.array(result.to_host()) for result in several)


@lru_cache(maxsize=1)
def _config() -> Any:
    return rt.Config(LOCAL_SYNC)
