"""IREE's own linker in the place of the system's, with the flags that IREE links embedded executables with."""

import os
import shlex
from collections.abc import Sequence

from mlir_sched.compiler.version import compiler_program

_FLAG = "--iree-llvmcpu-system-linker-path="
_NAMED = "LLD_VERSION=IREE"
"""What the linker calls itself in the binary; a shell runs the command."""
_ENVIRONMENT = "IREE_LLVM_EMBEDDED_LINKER_PATH"
_OF_LINKING = ("linker-path", "link-embedded", "link-static", "keep-linker-artifacts")
"""Parts of flags that ask for another link than the usual one."""
_ARGUMENTS = (
    "-flavor gnu --build-id=none --no-undefined --no-allow-shlib-undefined --allow-multiple-definition --gc-sections"
    " -z now -z relro --discard-all --icf=all --ignore-data-address-equality --ignore-function-address-equality"
    " --hash-style=sysv"
)
"""Source: EmbeddedLinkerTool.cpp of IREE 3.13, without what UnixLinkerTool.cpp adds."""


def linker_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the compiler flag that names the linker; none where the user's flags, or the environment, ask for another.

    Args:
        flags: The other flags of the process.
    """
    program = compiler_program("iree-lld")
    asked = any(part in flag for flag in flags for part in _OF_LINKING) or _ENVIRONMENT in os.environ
    return () if asked or program is None else (f"{_FLAG}{_NAMED} {shlex.quote(str(program))} {_ARGUMENTS}",)
