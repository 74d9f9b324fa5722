"""Parts of the tuner that installed distributions add by entry points, such as strategies and targets.

A distribution registers a part in its ``pyproject.toml``::

    [project.entry-points."mlir_sched.strategies"]
    greedy = "my_package:Greedy"
"""

import inspect
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from mlir_sched.errors import UserError

T = TypeVar("T")


@dataclass(frozen=True)
class ExtraPart:
    """A part of ours that needs packages which only an extra of this distribution installs.

    Attributes:
        module: Imports these packages, and is itself imported when the part is named.
        name: The part in this module.
        extra: The extra that installs them.
    """

    module: str
    name: str
    extra: str


@dataclass(frozen=True)
class PluginGroup(Generic[T]):
    """A kind of part: the parts that are built in, those that need an extra, and those that distributions register.

    Attributes:
        name: The entry-point group.
        what: What such a part is called in messages.
        built_in: The parts that are built in, by name.
        with_extras: Further parts of ours, by name.
    """

    name: str
    what: str
    built_in: Mapping[str, T]
    with_extras: Mapping[str, ExtraPart] = field(default_factory=dict)

    def names(self) -> tuple[str, ...]:
        """Return the names of all parts: those that are built in come first; none is loaded."""
        return (*self.built_in, *self.with_extras, *(entry.name for entry in self._registered()))

    def named(self, name: str) -> T:
        """Return the part with a name; only this part is loaded.

        Raises:
            UserError: There is no such part, two distributions register one, or it cannot be loaded, as
                where its extra is not installed.
        """
        if name in self.built_in:
            return self.built_in[name]
        if name in self.with_extras:
            return self._with_extra(name, self.with_extras[name])
        entries = [entry for entry in self._registered() if entry.name == name]
        if not entries:
            raise UserError(f"unknown {self.what} {name!r}; known are {', '.join(self.names())}")
        if len(entries) > 1:
            raise UserError(f"{len(entries)} distributions register a {self.what} {name!r}; uninstall all but one")
        with _loading(entries[0], self.what):
            part: T = entries[0].load()
        return part

    def _with_extra(self, name: str, part: ExtraPart) -> T:
        try:
            found: T = getattr(import_module(part.module), part.name)
        except Exception as error:
            raise UserError(
                f"the {self.what} {name!r} needs packages that cannot be loaded ({error}): "
                f"pip install 'mlir-sched[{part.extra}]'"
            ) from error
        return found

    def _registered(self) -> list[EntryPoint]:
        return [entry for entry in _entries(self.name) if entry.name not in {*self.built_in, *self.with_extras}]


def make_all(group: str, what: str) -> Iterator[tuple[EntryPoint, Any]]:
    """Yield what the classes and functions that distributions register in a group make, ordered by name.

    Raises:
        UserError: A part cannot be loaded or made.
    """
    for entry in _entries(group):
        with _loading(entry, what):
            made = entry.load()()
        yield entry, made


def _entries(group: str) -> list[EntryPoint]:
    """Return what distributions register in a group, ordered by name."""
    return sorted(entry_points(group=group), key=lambda entry: entry.name)


@contextmanager
def _loading(entry: EntryPoint, what: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise UserError(
            f"the {what} {entry.name!r} ({entry.value}) cannot be loaded: {error!r}; "
            "mend or uninstall the distribution that registers it"
        ) from error


def key_of(part: object) -> str:
    """Return what tells a part apart in the keys of stores, so that the same run is resumed with the same part.

    The key is the part's ``key``, a text or what a method without arguments returns; classes and functions of modules
    without one have their qualified name.

    Raises:
        UserError: The part has no key, and no name that says what it does in every process.
    """
    key = getattr(part, "key", None)
    if callable(key) and not isinstance(part, type):
        key = key()
    if isinstance(key, str):
        return key
    name = getattr(part, "__qualname__", "<locals>")
    if (inspect.isclass(part) or inspect.isfunction(part)) and "<" not in name:
        return f"{part.__module__}.{name}"
    raise UserError(
        f"{part!r} needs a key, a text that is the same in every process that resumes the run: pass a class or a "
        "function of a module, or an object with an attribute `key`"
    )


def origin_of(error: Exception) -> tuple[str, int]:
    """Return the file and the line of the innermost call that is not in this package, or of the innermost one."""
    frames = list(traceback.walk_tb(error.__traceback__))
    theirs = [each for each in frames if not each[0].f_globals.get("__name__", "").startswith("mlir_sched.")]
    frame, line = (theirs or frames)[-1]
    return frame.f_code.co_filename, line
