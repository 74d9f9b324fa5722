"""The installed IREE compiler: its release and its programs, found without loading the compiler."""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from mlir_sched.errors import UserError

SUPPORTED = "3.13"
"""Release series that the scripts, passes and phases used here were checked against."""


def compiler_version() -> str:
    """Return the version of the installed IREE compiler, e.g. ``3.13.0``.

    Raises:
        UserError: No compiler is installed, or a compiler of another series.
    """
    try:
        found = version("iree-base-compiler")
    except PackageNotFoundError:
        raise UserError(
            f"the IREE compiler is not installed; try: pip install 'iree-base-compiler=={SUPPORTED}.*'"
        ) from None
    if found.split(".")[:2] != SUPPORTED.split("."):
        raise UserError(
            f"IREE {SUPPORTED}.x is needed, {found} is installed; try: pip install 'iree-base-compiler=={SUPPORTED}.*'"
        )
    return found


def compiler_program(name: str) -> Path | None:
    """Return the path of a program of the installed compiler, such as ``iree-lld``; None where it is missing."""
    package = find_spec("iree.compiler")
    folders = package.submodule_search_locations or () if package else ()
    programs = (Path(folder) / "_mlir_libs" / name for folder in folders)
    return next((program for program in programs if program.exists()), None)
