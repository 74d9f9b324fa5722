"""The flags with which ``iree-compile`` uses a transform library.

Two are needed. The first runs the library's ``@__transform_main`` on the whole program before dispatches are formed
(TransformDialectInterpreter.cpp); the second has IREE call ``@__kernel_config`` with every dispatch
(MaterializeUserConfigs.cpp).

The first also makes the second safe. IREE loads a library under a lock, and its verification hands work to the
compiler's thread pool; a thread that waits there may take up the next dispatch, ask for the library again and wait for
itself for ever (IREECodegenLibraryManager.cpp, IREE 3.13: about 1 % of compilations on two busy cores). Loaded while a
single thread runs, it is only looked up later. And a library that is missing or does not parse is an error then, not
the silent default code.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path

PROGRAM_ENTRY = "__transform_main"
"""The sequence of a library that rewrites the whole program; the interpreter pass's default entry point."""
DISPATCH_ENTRY = "__kernel_config"
"""The sequence of a library that IREE calls with every dispatch."""
_DISPATCH_FLAG = "--iree-codegen-transform-dialect-library="
_PROGRAM_FLAG = (
    "--iree-preprocessing-pass-pipeline=builtin.module(iree-transform-dialect-interpreter{library-file-name="
)
_PLAIN_PATH = re.compile(r"[\w./+-]+")


def library_flags(library: Path) -> tuple[str, ...]:
    """Return the flags that make ``iree-compile`` use a library; both must name it by the same path."""
    path = str(library)
    quoted = path if _PLAIN_PATH.fullmatch(path) else f"'{path}'"
    return f"{_PROGRAM_FLAG}{quoted}}})", f"{_DISPATCH_FLAG}{path}"


def without_library(flags: Sequence[str]) -> tuple[str, ...]:
    """Return the flags that name no library."""
    return tuple(flag for flag in flags if not flag.startswith((_DISPATCH_FLAG, _PROGRAM_FLAG)))


def library_in(flags: Sequence[str]) -> Path | None:
    """Return the library that flags have IREE use for dispatches, None when they name none."""
    named = [flag.removeprefix(_DISPATCH_FLAG) for flag in flags if flag.startswith(_DISPATCH_FLAG)]
    return Path(named[-1]) if named else None


def write_response_file(flags: Sequence[str]) -> str:
    """Return the text of a response file (``iree-compile @file``): one flag per line, quoted where it has spaces."""
    return "".join((f'"{flag}"' if re.search(r"\s", flag) else flag) + "\n" for flag in flags)


def read_response_file(text: str) -> tuple[str, ...]:
    """Return the flags of a response file.

    Raises:
        ValueError: A quotation is not closed.
    """
    return tuple(shlex.split(text))
