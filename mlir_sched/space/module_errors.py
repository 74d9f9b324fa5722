"""Errors in the transform modules of users."""

from __future__ import annotations

import traceback

from mlir_sched.errors import MlirSchedError, UserError


class module_errors:  # noqa: N801 - reads as a statement
    """Turn the exception of a module that is not ours into a user error that names the module and the line.

    Args:
        module: Name of the transform module.
        python_module: Name of the Python module that defines it.
    """

    def __init__(self, module: str, python_module: str) -> None:
        self._module, self._ours = module, python_module.startswith("mlir_sched.")

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if self._ours or not isinstance(error, Exception) or isinstance(error, MlirSchedError):
            return
        file, line = _origin_of(error)
        raise UserError(
            f"the transform module {self._module!r} raised {type(error).__name__}: {error} "
            f"({file}:{line}); mend it or leave it out"
        ) from error


def _origin_of(error: Exception) -> tuple[str, int]:
    """Return the file and the line of the innermost call that is not in this package, or of the innermost one."""
    frames = list(traceback.walk_tb(error.__traceback__))
    theirs = [each for each in frames if not each[0].f_globals.get("__name__", "").startswith("mlir_sched.")]
    frame, line = (theirs or frames)[-1]
    return frame.f_code.co_filename, line
