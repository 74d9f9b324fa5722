"""Errors in the transform modules of users."""

from __future__ import annotations

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.plugins import origin_of


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
        file, line = origin_of(error)
        raise UserError(
            f"the transform module {self._module!r} raised {type(error).__name__}: {error} "
            f"({file}:{line}); mend it or leave it out"
        ) from error
