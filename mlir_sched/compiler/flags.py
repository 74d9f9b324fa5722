"""Flags of ``iree-compile``: those that use a transform library, those that matter early, and files of flags.

A transform library needs two flags. The first runs the library's ``@__transform_main`` on the whole program before
dispatches are formed (TransformDialectInterpreter.cpp); the second makes IREE call ``@__kernel_config`` with every
dispatch (MaterializeUserConfigs.cpp).

The first flag also makes the second safe. IREE loads a library under a lock, and verifies it on the compiler's thread
pool; a thread that waits for the verification may take up the next dispatch, ask for the library again and wait for
itself for ever (IREECodegenLibraryManager.cpp, IREE 3.13: about 1 % of compilations on two busy cores). With the first
flag the library is loaded while a single thread runs, and only looked up later. It also makes a library that is missing
or does not parse an error, where the second flag alone would silently give the default code.
"""

import re
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
GROWTH = "--iree-opt-const-expr-max-size-increase-threshold"
"""How many bytes a constant may grow when the compiler evaluates what is computed from it (HoistIntoGlobals.cpp)."""
FUSED_PADDING = "--iree-dispatch-creation-enable-fuse-padding-into-linalg-consumer-ops"
"""Padding becomes part of the dispatch that reads the padded tensor. Without this flag a dispatch of its own copies the
tensor, or its producer writes into a larger buffer whose border is filled before (DispatchCreation/Passes.cpp)."""
_SPECIAL = re.compile(r"[\s\"'\\]")
_ESCAPED = re.compile(r"[\\\"]")


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


def task_flags(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the flags of a program that matter to its tasks, too: equal dispatches of programs share their records."""
    return tuple(flag for flag in flags if flag.partition("=")[0] not in (GROWTH, FUSED_PADDING))


def write_response_file(flags: Sequence[str]) -> str:
    """Return the text of a response file, as in ``iree-compile @flags.txt``: a flag per line, quoted where needed."""
    return "".join(f"{_quoted(flag)}\n" for flag in flags)


def read_response_file(text: str) -> tuple[str, ...]:
    """Return the flags of a response file, in the form that LLVM reads.

    Words end at whitespace; a backslash escapes the next character, also inside single and double quotes. Source: LLVM,
    ``cl::TokenizeGNUCommandLine`` (CommandLine.cpp).

    Raises:
        ValueError: A quotation is not closed.
    """
    words: list[str] = []
    quote, inside = "", False
    characters = iter(text)
    for character in characters:
        if not quote and character.isspace():
            inside = False
            continue
        if not inside:
            words.append("")
            inside = True
        if character == "\\":
            words[-1] += next(characters, "")
        elif character == quote:
            quote = ""
        elif not quote and character in "'\"":
            quote = character
        else:
            words[-1] += character
    if quote:
        raise ValueError("no closing quotation")
    return tuple(words)


def _quoted(flag: str) -> str:
    escaped = _ESCAPED.sub(r"\\\g<0>", flag)
    return f'"{escaped}"' if _SPECIAL.search(flag) or not flag else flag
