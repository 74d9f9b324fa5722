"""Transform modules that a user names on the command line."""

import importlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.transform_scripts.module import TransformModule


def load_modules(names: Sequence[str]) -> tuple[TransformModule, ...]:
    """Return an instance of each class or factory, named as ``package.module:Class``.

    Modules are looked up on the Python path and last in the working directory, so that no file there shadows a module.

    Raises:
        UserError: A name is not of this form, does not exist, raises, or makes no transform module.
    """
    with _working_directory_on_path():
        return tuple(_load(name) for name in names)


def _load(name: str) -> TransformModule:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise UserError(f"the transform module {name!r} must be named as package.module:Class")
    try:
        made = getattr(importlib.import_module(module_name), attribute)()
    except MlirSchedError:
        raise
    except (Exception, SystemExit) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = (
            ""
            if where.filename.startswith("<frozen") or where.filename == __file__
            else f" ({where.filename}:{where.lineno})"
        )
        raise UserError(
            f"the transform module {name} cannot be loaded: {type(error).__name__}: {error}{place}"
        ) from error
    if not isinstance(made, TransformModule):
        raise UserError(f"{name} makes a {type(made).__name__}, which is not a TransformModule")
    return made


@contextmanager
def _working_directory_on_path() -> Iterator[None]:
    folder = str(Path.cwd())
    added = folder not in sys.path and "" not in sys.path
    if added:
        sys.path.append(folder)
    try:
        yield
    finally:
        if added and folder in sys.path:
            sys.path.remove(folder)
