"""Makes the binaries of a program, on llvm-cpu without compiling the libraries that IREE adds to each one.

IREE 3.13 adds musl and the ukernels' library to every embedded executable, compiles them anew together with the
dispatch, and lets the linker drop what the dispatch does not call: as a rule all of it, for half of the time that a
small candidate takes (LLVMCPUTarget.cpp, ``serializeExecutable``). To an executable for the system's linker it adds
neither. With IREE's own linker and flags in the place of the system's, a dispatch that calls nothing of these libraries
becomes the same binary. Where one that does is not known by its task's program, it has no link; it is compiled again
with the libraries, and where that succeeds, so are all others of the task from then on. What LLVM rejects either way
costs its own candidate alone.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import declarations
from mlir_sched.compiler.version import compiler_program
from mlir_sched.compiler.worker.session import HAL, TARGETS, process_flags, run_phases
from mlir_sched.errors import CompilerError

_SYSTEM_LINKER, _EMBEDDED_LINKER = "IREE_LLVM_SYSTEM_LINKER_PATH", "IREE_LLVM_EMBEDDED_LINKER_PATH"
_NAMED = "LLD_VERSION=IREE"
"""What the linker calls itself in the binary; a shell runs the command."""
_ARGUMENTS = (
    "-flavor gnu --build-id=none --no-undefined --no-allow-shlib-undefined --allow-multiple-definition --gc-sections"
    " -z now -z relro --discard-all --icf=all --ignore-data-address-equality --ignore-function-address-equality"
    " --hash-style=sysv"
)
"""Source: EmbeddedLinkerTool.cpp of IREE 3.13, without what UnixLinkerTool.cpp adds."""
_VARIANT = "hal.executable.variant"
_EMBEDDED = '#hal.executable.target<"llvm-cpu", "embedded-elf-'
_TRIPLE = '-unknown-unknown-eabi-elf"'
"""End of the triple that IREE gives an embedded executable (LLVMTargetOptions.cpp); a program may name another one."""
_OF_LINKING = ("link_embedded", "link_static", "link_ukernel_bitcode", "debug_symbols", "sanitizer")
"""Attributes of targets that ask for another link than the usual one."""
_OF_LIBRARIES = ("#hal.executable.object<", "arith.remf")
"""What a task's program has that needs the libraries: files to be linked with, as the libraries' definitions win over
theirs, and remainders, for which LLVM calls musl."""
_CLOSING, _ALONE = "}>", ", link_embedded = false, link_ukernel_bitcode = false}>"
_UNWINDING = "#llvm.uwtableKind<sync>"
"""Puts frames where an embedded executable has them: there the query function has such an attribute, ``async``, and
another one none. ``async`` would give a dispatch other frames on AArch64."""
_STDERR = 2
_with_libraries: set[int] = set()  # hashes of sources of which a program needed the libraries


def with_binaries(module: Any, source: str) -> Any:
    """Return a program with binaries in place of its translated dispatches, at phase ``hal``.

    Args:
        module: The program after phase ``executable-targets``, which may be changed.
        source: The task's program; once a program of it is linked with the libraries only, no other is tried alone.

    Raises:
        CompilerError: The compiler rejects the program.
    """
    command = link_command(process_flags())
    if command and hash(source) not in _with_libraries and _may_be_linked_alone(module, source):
        alone, said_bytes = module.clone(), os.fstat(_STDERR).st_size
        with suppress(CompilerError, ir.MLIRError), system_linker(command):
            _link_alone(alone)
            run_phases(alone, TARGETS, HAL)
            return alone
        with suppress(OSError):  # no file, outside of a worker
            os.ftruncate(_STDERR, said_bytes)  # should the process die later, this link is not why
        run_phases(module, TARGETS, HAL)
        _with_libraries.add(hash(source))  # not where this is rejected, too: that is no matter of the link
        return module
    run_phases(module, TARGETS, HAL)
    return module


def _may_be_linked_alone(module: Any, source: str) -> bool:
    """Say whether executables are embedded ones with the usual link, and nothing in the task's program needs more."""
    targets = [str(op.attributes["target"]) for op in declarations(module) if op.name == _VARIANT]
    usual = [each.startswith(_EMBEDDED) and _TRIPLE in each and each.endswith(_CLOSING) for each in targets]
    asked = any(part in each for each in targets for part in _OF_LINKING)
    return all(usual) and not asked and not any(part in source for part in _OF_LIBRARIES)


def _link_alone(module: Any) -> None:
    """Have the executables of a program linked by the system's linker."""
    for op in declarations(module):
        if op.name == _VARIANT:
            target = str(op.attributes["target"]).removesuffix(_CLOSING)
            op.attributes["target"] = ir.Attribute.parse(target + _ALONE)
        elif op.name == "llvm.func" and op.regions[0].blocks:
            op.attributes["uwtable_kind"] = ir.Attribute.parse(_UNWINDING)


def link_command(flags: Sequence[str]) -> str:
    """Return the command that links as IREE does; empty where flags, or the environment, may ask for another link.

    Args:
        flags: The compiler flags of the process.
    """
    program = compiler_program("iree-lld")
    asked = any("link" in flag.partition("=")[0] for flag in flags) or bool(os.environ.get(_EMBEDDED_LINKER))
    return "" if asked or program is None else f"{_NAMED} {shlex.quote(str(program))} {_ARGUMENTS}"


@contextmanager
def system_linker(command: str) -> Iterator[None]:
    """Have IREE run a command as the system's linker during a block; no flag may name another."""
    users = os.environ.get(_SYSTEM_LINKER)
    os.environ[_SYSTEM_LINKER] = command
    try:
        yield
    finally:
        if users is None:
            del os.environ[_SYSTEM_LINKER]
        else:
            os.environ[_SYSTEM_LINKER] = users
