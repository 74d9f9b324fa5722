"""Random networks by seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from benchmarks.fuzz.draft import Array
from benchmarks.fuzz.networks.convolutions import CHANNELS, convolved, enlarged_by_taps, pixels_read, pooled, residual
from benchmarks.fuzz.networks.form import Form
from benchmarks.fuzz.networks.joins import (
    combined,
    concatenated,
    cropped,
    gathered_pixels,
    rearranged,
    repeated_pixels,
    shuffled,
    split,
)
from benchmarks.fuzz.networks.means import classified, gated
from benchmarks.fuzz.networks.network import KIND, Network
from benchmarks.fuzz.programs import RandomProgram, finished
from benchmarks.mlir_text import Value

Layer: TypeAlias = Callable[[Network, Value], Value | None]
"""Returns an image made from another one; None where the layer does not take that."""

LAYERS: tuple[Layer, ...] = (
    *[convolved] * 8, *[pixels_read] * 2, *[residual] * 4, *[pooled] * 2, *[combined] * 3, *[concatenated] * 3,
    *[split] * 2, *[shuffled] * 2, gated, cropped, rearranged, repeated_pixels, gathered_pixels, enlarged_by_taps,
)  # fmt: skip
"""All layers, the frequent ones more than once."""
FEWEST, MOST = 3, 9
"""Layers of a network, fewest and most: a program is compiled in about a second."""
MOST_ELEMENTS = 1 << 14
"""Most elements of an image."""
LARGEST = 1e30
"""Largest number that may be computed: sums in another order do not overflow on their way."""
FORMS = (*[Form()] * 6, *[Form(2, first=False)] * 2, Form(1), Form(1, first=False))
"""The layouts of networks, as often as they have them."""
_DEFINED = re.compile(r"  %(\w+)(?::\d+)? = ")
_USED = re.compile(r"%(\w+)")


@dataclass(frozen=True)
class RandomNetwork:
    """A network and its results.

    Attributes:
        draft: What it is made of.
        outputs: Those of its values that it returns.
    """

    draft: Network
    outputs: tuple[Value, ...]

    @property
    def program(self) -> RandomProgram:
        """The network as a program."""
        return finished(self.draft, self.outputs)

    @property
    def pruned(self) -> RandomNetwork:
        """The network without what its results do not need."""
        return RandomNetwork(_pruned(self.draft, self.outputs), self.outputs)

    @property
    def size(self) -> int:
        """Values that it computes."""
        return len(self.draft.steps)


def random_network(seed: int) -> RandomNetwork:
    """Return the network of a seed: layers on its image, or on any image between, with one to four results."""
    rng = np.random.default_rng(seed)
    draft = Network(rng, whole=bool(rng.random() < 0.5))
    draft.form, draft.stores = draft.any_of(FORMS), bool(rng.random() < 0.85)
    sizes = [draft.any_of([7, 8, 9, 12, 14, 16])] * draft.form.spatial
    if rng.random() < 0.3:
        sizes = [draft.any_of([5, 8, 11, 14]) for _ in sizes]
    shape = draft.form.shape(draft.any_of([1, 1, 1, 2]), draft.any_of(CHANNELS), sizes)
    draft.offered(draft.argument(*shape, kind=KIND))
    layers, wanted = 0, int(rng.integers(FEWEST, MOST + 1))
    for _ in range(6 * wanted):
        attempt = deepcopy(draft)
        made = _grown(attempt)
        draft.rng = attempt.rng
        if made:
            draft, layers = attempt, layers + 1
        if layers == wanted:
            break
    return RandomNetwork(draft, tuple(_outputs(draft))).pruned


def _grown(draft: Network) -> bool:
    """Add a layer; say whether one came about whose images are neither too large nor near the end of their type."""
    before = len(draft.images)
    source = draft.any_of(draft.images) if draft.rng.random() < 0.4 else draft.images[-1]
    made = draft.any_of(LAYERS)(draft, source)
    return made is not None and all(_fits(draft.arrays[each.name]) for each in draft.images[before:])


def _fits(array: Array) -> bool:
    return array.size <= MOST_ELEMENTS and bool(np.all(np.abs(array) <= LARGEST))


def _outputs(draft: Network) -> list[Value]:
    """Return the last image, or what a product makes of it, and sometimes others, which may have readers."""
    *others, last = dict.fromkeys(draft.images)
    kept = [image for image in others if image not in draft.inputs and draft.rng.random() < 0.12]
    return [classified(draft, last) if draft.rng.random() < 0.3 else last, *kept[:3]]


def operations(lines: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the operations of a body: the name of what each defines, and its lines, those of its region included."""
    found = list[tuple[str, list[str]]]()
    for line in lines:
        if defined := _DEFINED.match(line):
            found.append((defined[1], []))
        found[-1][1].append(line)
    return found


def _pruned(draft: Network, outputs: Sequence[Value]) -> Network:
    """Return a draft with the operations and arguments that some of its values are computed from."""
    needed, kept = {value.name for value in outputs}, list[list[str]]()
    for name, lines in reversed(operations(draft.lines)):
        if name in needed:
            needed.update(used for line in lines for used in _USED.findall(line))
            kept.append(lines)
    return replace(
        draft,
        inputs=[value for value in draft.inputs if value.name in needed],
        lines=[line for lines in reversed(kept) for line in lines],
        steps=[step for step in draft.steps if step.value.name in needed],
        arrays={name: array for name, array in draft.arrays.items() if name in needed},
    )
