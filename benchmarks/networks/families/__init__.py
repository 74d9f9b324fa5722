"""Networks of other families: random weights with seed 0, batch 1, f32 unless the name says otherwise.

Runs in the environment of the engines, and imports PyTorch, ``transformers`` and ``torchvision`` only when a network is
made. Deep networks are cut to a few layers where the dispatches of further layers are the same. Every public function
of a family's module that needs no argument makes a network: a module and an example of each of its inputs.
"""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from benchmarks.networks.families import dense, language, sequence, sets, sound, vision


def _networks(family: ModuleType) -> Iterator[tuple[str, Callable[[], tuple[Any, ...]]]]:
    """Yield the networks of a module by name, in the order of its text."""
    for name, function in vars(family).items():
        is_own = inspect.isfunction(function) and function.__module__ == family.__name__
        if is_own and not name.startswith("_") and not inspect.signature(function).parameters:
            yield name, function


FAMILIES: dict[str, Callable[[], tuple[Any, ...]]] = {
    name: function
    for family in (vision, dense, language, sequence, sets, sound)
    for name, function in _networks(family)
}
"""Functions that return a module and an example of each of its inputs, by name."""
