"""Spaces: ordered lists of transform modules, those that other distributions register among them."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from functools import cached_property

from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch
from mlir_sched.plugins import make_all
from mlir_sched.space.module_errors import module_errors
from mlir_sched.space.sources import sources_digest
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.module import Sketch, TransformModule

ENTRY_POINTS = "mlir_sched.transform_modules"
"""Entry-point group through which other distributions register transform modules (a class or a factory)."""


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
            module: The module to insert.
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
