"""What a worker process does for :mod:`benchmarks.fuzz.networks.laboratory`: compiles a network, and runs it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import iree.runtime as rt
import numpy as np
from iree.compiler import ir

from benchmarks.fuzz.draft import Array
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.compiler.worker.session import ABI, END, START, Compilation, context
from mlir_sched.errors import CompilerError, FailureClass, ScriptError
from mlir_sched.library import RewriteScript
from mlir_sched.library.library import build_library
from mlir_sched.targets.target import LOCAL_SYNC
from mlir_sched.tasks.worker.extraction import apply_to_program


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
                apply_to_program(build_library([], rewrite), module)
                if rewrite.mark not in rewrites_in(str(module)):
                    raise ScriptError(f"the rewrite {rewrite.name} left no trace in the program")
            compilation.load(module)
            compilation.run(ABI, END)
            stage = FailureClass.RUN_ERROR
            return Ran(_results(compilation.bytecode(), inputs))
        except ScriptError as error:
            return Ran(None, FailureClass.SCRIPT_ERROR, str(error))
        except (CompilerError, RuntimeError) as error:
            return Ran(None, stage, str(error))


def _results(vmfb: bytes, inputs: Sequence[Array]) -> tuple[Array, ...]:
    config = _config()
    module = rt.load_vm_module(rt.VmModule.copy_buffer(config.vm_instance, vmfb), config)
    results = module["main"](*inputs)
    several = results if isinstance(results, (tuple, list)) else (results,)
    return tuple(np.array(result.to_host()) for result in several)


@lru_cache(maxsize=1)
def _config() -> Any:
    return rt.Config(LOCAL_SYNC)
