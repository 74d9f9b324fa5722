"""IREE's own linker in the place of the system's, with the flags that IREE links embedded executables with."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from mlir_sched.compiler.version import compiler_program

_SYSTEM, _EMBEDDED = "IREE_LLVM_SYSTEM_LINKER_PATH", "IREE_LLVM_EMBEDDED_LINKER_PATH"
_NAMED = "LLD_VERSION=IREE"
"""What the linker calls itself in the binary; a shell runs the command."""
_ARGUMENTS = (
    "-flavor gnu --build-id=none --no-undefined --no-allow-shlib-undefined --allow-multiple-definition --gc-sections"
    " -z now -z relro --discard-all --icf=all --ignore-data-address-equality --ignore-function-address-equality"
    " --hash-style=sysv"
)
"""Source: EmbeddedLinkerTool.cpp of IREE 3.13, without what UnixLinkerTool.cpp adds."""


def link_command(flags: Sequence[str]) -> str:
    """Return the command that links as IREE does; empty where flags, or the environment, may ask for another link.

    Args:
        flags: The compiler flags of the process.
    """
    program = compiler_program("iree-lld")
    asked = any("link" in flag.partition("=")[0] for flag in flags) or bool(os.environ.get(_EMBEDDED))
    return "" if asked or program is None else f"{_NAMED} {shlex.quote(str(program))} {_ARGUMENTS}"


@contextmanager
def system_linker(command: str) -> Iterator[None]:
    """Have IREE run a command as the system's linker during a block; no flag may name another."""
    users = os.environ.get(_SYSTEM)
    os.environ[_SYSTEM] = command
    try:
        yield
    finally:
        if users is None:
            del os.environ[_SYSTEM]
        else:
            os.environ[_SYSTEM] = users
