"""The supported IREE release, checked without loading the compiler."""

from importlib.metadata import PackageNotFoundError, version

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
