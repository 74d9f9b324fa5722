"""Spaces: ordered lists of transform modules, those that other distributions register among them."""

from __future__ import annotations

import hashlib
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from mlir_sched.errors import MlirSchedError, UserError
from mlir_sched.payload import Dispatch
from mlir_sched.plugins import make_all, origin_of
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.module import Sketch, TransformModule

ENTRY_POINTS = "mlir_sched.transform_modules"
"""Entry-point group through which other distributions register transform modules (a class or a factory)."""
_PACKAGE = "mlir_sched"
_ROOT = Path(__file__).parents[1]
_OWN = ("transform_scripts", "space")
"""The packages that print scripts, beside the files of plain data; IREE's version is a part of the tasks' keys."""


class Space:
    """An ordered list of transform modules; immutable, so every change returns a new space.

    Modules are asked in order. A module that schedules a whole dispatch should stand before the modules that
    distribute and lower it; :meth:`insert` puts it there by default.
    """

    def __init__(self, modules: Sequence[TransformModule]) -> None:
        """Make a space of modules, in their order.

        Raises:
            UserError: Two modules have the same name.
        """
        names = [module.name for module in modules]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise UserError(f"two transform modules are named {doubled[0]!r}; give each a name of its own")
        self.modules = tuple(modules)

    @cached_property
    def sources(self) -> str:
        """A digest of the sources that the scripts of this space come from (:func:`sources_digest`)."""
        return sources_digest(self.modules)

    @staticmethod
    def default(target: Target) -> Space:
        """Return the space for a target: registered modules first, then the backend's own.

        Raises:
            UserError: The target has no modules, or a registered module cannot be loaded.
        """
        modules = [*registered_modules(target), *_own_modules(target)]
        if not modules:
            raise UserError(f"there are no transform modules for the target {target.name!r}")
        return Space(modules)

    def for_target(self, target: Target) -> Space:
        """Return this space if every module of it can be used for a target.

        Raises:
            UserError: A module cannot be used; the message names its stage.
        """
        for module in self.modules:
            if not module.is_for(target):
                raise UserError(
                    f"the transform module {module.name!r} cannot be used for the target {target.name}: its stage "
                    f"{module.stage.name.lower()!r} is for {module.made_for} only"
                )
        return self

    def led_by(self, modules: Sequence[TransformModule], target: Target) -> Space:
        """Return a space for a target with further modules in front of those of this space.

        Raises:
            UserError: A module cannot be used for the target, which is said first, or two have the same name.
        """
        return Space([*Space(modules).for_target(target).modules, *self.for_target(target).modules])

    def insert(self, module: TransformModule, *, before: str | None = None, after: str | None = None) -> Space:
        """Return a space with one more module, by default at the front.

        Args:
            before, after: Name of the module that it is put before or after; one of the two at most.

        Raises:
            UserError: The space lacks the named module, has one of the same name, or both positions are given.
        """
        if before is not None and after is not None:
            raise UserError("give either before or after, not both")
        position = 0
        if before is not None:
            position = self._position(before)
        elif after is not None:
            position = self._position(after) + 1
        return Space([*self.modules[:position], module, *self.modules[position:]])

    def replace(self, name: str, module: TransformModule) -> Space:
        """Return a space with another module in the place of the named one.

        Raises:
            UserError: The space lacks the named module, or another one has the new module's name.
        """
        position = self._position(name)
        return Space([*self.modules[:position], module, *self.modules[position + 1 :]])

    def remove(self, name: str) -> Space:
        """Return a space without the named module.

        Raises:
            UserError: The space lacks the named module.
        """
        position = self._position(name)
        return Space([*self.modules[:position], *self.modules[position + 1 :]])

    def sketches(self, dispatch: Dispatch, target: Target) -> tuple[Sketch, ...]:
        """Return the complete sketches that the modules make for a dispatch; empty when no module can schedule it.

        Raises:
            UserError: A module that is not ours raised.
        """
        sketches = [Sketch()]
        for module in self.modules:
            if not module.is_for(target):
                continue
            with module_errors(module.name, type(module).__module__):
                for op in dispatch.ops:
                    sketches = [new for old in sketches for new in module.extend(old, op, dispatch, target)]
        return tuple(sketch for sketch in sketches if sketch.complete)

    def _position(self, name: str) -> int:
        names = [module.name for module in self.modules]
        if name not in names:
            raise UserError(f"the space has no transform module {name!r}; it has {', '.join(names)}")
        return names.index(name)


def _own_modules(target: Target) -> Sequence[TransformModule]:
    """Return the modules of a target that is built in; none for a target of another distribution."""
    package = f"mlir_sched.transform_scripts.{target.name.replace('-', '_')}"
    try:
        backend = importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        return ()
    modules: Sequence[TransformModule] = backend.default_modules()
    return modules


def registered_modules(target: Target) -> Iterator[TransformModule]:
    """Yield the modules that installed distributions register for a target, ordered by entry-point name.

    Raises:
        UserError: A module cannot be loaded or is not a transform module.
    """
    for entry, module in make_all(ENTRY_POINTS, "transform module"):
        if not isinstance(module, TransformModule):
            raise UserError(f"{entry.value}, registered as {entry.name!r}, does not make a TransformModule")
        if module.is_for(target):
            yield module


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


def sources_digest(modules: Iterable[TransformModule]) -> str:
    """Return a digest of the sources of mlir-sched and of transform modules; empty where a source cannot be found.

    Records of equal sources are known to have the scripts that traces make today.

    Of a module of others these are all files of the package that it lies in, or its file where that is in no package.
    What it imports from elsewhere does not count.
    """
    files = [*_ROOT.glob("*.py"), *(file for package in _OWN for file in (_ROOT / package).rglob("*.py"))]
    for name in sorted({type(module).__module__ for module in modules}):
        if name.split(".")[0] != _PACKAGE:
            found = _files_of(name)
            if not found:
                return ""
            files += found
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files_of(name: str) -> list[Path]:
    """Return the source files that a Python module stands for; none where it is no file."""
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    if module is None or file is None or not Path(file).is_file():
        return []
    return list(Path(file).parent.rglob("*.py")) if module.__package__ else [Path(file)]
