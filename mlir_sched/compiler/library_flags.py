"""The flags with which ``iree-compile`` uses a transform library.

Two flags are needed. The first runs the library's ``@__transform_main`` on the whole program before dispatches are
formed (TransformDialectInterpreter.cpp); the second makes IREE call ``@__kernel_config`` with every dispatch
(MaterializeUserConfigs.cpp).

The first flag also makes the second safe. IREE loads a library under a lock, and verifies it on the compiler's thread
pool; a thread that waits for the verification may take up the next dispatch, ask for the library again and wait for
itself for ever (IREECodegenLibraryManager.cpp, IREE 3.13: about 1 % of compilations on two busy cores). With the first
flag the library is loaded while a single thread runs, and only looked up later. It also makes a library that is missing
or does not parse an error, where the second flag alone would silently give the default code.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlir_sched.errors import UnusablePathError

PROGRAM_ENTRY = "__transform_main"
"""The sequence of a library that rewrites the whole program; the interpreter pass's default entry point."""
DISPATCH_ENTRY = "__kernel_config"
"""The sequence of a library that IREE calls with every dispatch."""
_DISPATCH_FLAG = "--iree-codegen-transform-dialect-library="
_PROGRAM_FLAG = (
    "--iree-preprocessing-pass-pipeline=builtin.module(iree-transform-dialect-interpreter{library-file-name="
)
_PROGRAM_END = "})"


def library_flags(library: Path) -> tuple[str, ...]:
    """Return the flags that make ``iree-compile`` use a library; both name the library by the same path, as they must.

    Raises:
        UnusablePathError: The library's path cannot be written in the flags.
    """
    if not is_utf8(str(library)):
        raise _unusable(library, "bytes that are not UTF-8")
    if "@" in str(library):  # IREE takes the text after an @ for the name of an entry (IREECodegenLibraryManager.cpp)
        raise _unusable(library, "an @")
    return f"{_PROGRAM_FLAG}{_option_value(library)}{_PROGRAM_END}", f"{_DISPATCH_FLAG}{library}"


def is_utf8(path: str) -> bool:
    """Say whether a path can be written in UTF-8, the only encoding that IREE reads paths in."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _option_value(library: Path) -> str:
    """Return a path as MLIR's pass options take it (``parseNextArg`` in PassRegistry.cpp).

    A value ends at a space outside quotes, and quotes cannot be escaped. The options end at the brace that closes their
    opening brace, inside quotes or not.
    """
    path = str(library)
    if not _braces_match(path):
        raise _unusable(library, "a brace that has no partner")
    if " " not in path:
        return path
    for quote in ("'", '"'):
        if quote not in path:
            return f"{quote}{path}{quote}"
    raise _unusable(library, "spaces and both kinds of quotes")


def _unusable(library: Path, why: str) -> UnusablePathError:
    return UnusablePathError(library.parent, f"IREE finds no library in a folder with {why} in its path")


def _braces_match(path: str) -> bool:
    depth = 0
    for character in path:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return False
    return depth == 0


def without_library(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the flags without the two flags of their library, in the form that :func:`library_flags` writes."""
    library = library_in(flags)
    return tuple(
        flag
        for flag in flags
        if library is None or not (flag == f"{_DISPATCH_FLAG}{library}" or _library_of_program(flag) == library)
    )


def library_in(flags: Sequence[str]) -> Path | None:
    """Return the library that flags make IREE use for dispatches, None when they name no library."""
    named = [flag.removeprefix(_DISPATCH_FLAG) for flag in flags if flag.startswith(_DISPATCH_FLAG)]
    return Path(named[-1]) if named else None


def _library_of_program(flag: str) -> Path | None:
    """Return the library that a flag runs on the program; None unless the flag does this and nothing else."""
    if not (flag.startswith(_PROGRAM_FLAG) and flag.endswith(_PROGRAM_END)):
        return None
    value = flag.removeprefix(_PROGRAM_FLAG).removesuffix(_PROGRAM_END)
    for quote in ("'", '"'):
        if len(value) > 1 and value[0] == value[-1] == quote and quote not in value[1:-1]:
            value = value[1:-1]
            return Path(value) if _braces_match(value) else None
    return Path(value) if " " not in value and _braces_match(value) else None
