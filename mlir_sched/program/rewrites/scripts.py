"""The rewrites that apply to a program, as text (the worker's side of ``program/variants.py``)."""

from __future__ import annotations

from iree.compiler import ir

from mlir_sched.compiler.worker.session import ABI, START, Compilation, CompilerError, context
from mlir_sched.errors import UserError
from mlir_sched.library.rewrite_script import RewriteScript
from mlir_sched.program.rewrites import default_rewrites
from mlir_sched.transform_scripts.script import new_library, print_module


def rewrite_scripts(path: str, cores: int) -> tuple[RewriteScript, ...]:
    """Return the script of every rewrite that applies to a program on ``cores`` cores.

    Raises:
        UserError: The compiler rejects the program.
    """
    with context(), ir.Location.unknown(), Compilation() as compilation:
        try:
            compilation.load_file(path)
            compilation.run(START, ABI)
        except CompilerError as error:
            raise UserError(str(error).splitlines()[0]) from None
        program = compilation.module()
        context().get_dialect_descriptor("transform")  # building ops, unlike parsing them, does not load it
        scripts = []
        for rewrite in default_rewrites(cores):
            if rewrite.applies(program):
                library = new_library()
                symbol = rewrite.append(library, program)
                scripts.append(
                    RewriteScript(rewrite.name, symbol, print_module(library), rewrite.flags, rewrite.refines)
                )
        return tuple(scripts)
