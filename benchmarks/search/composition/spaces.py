"""The growing design spaces: a whole space, reduced to its first part and completed part by part."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.space.space import Space
from mlir_sched.transform_scripts.llvm_cpu import ContractionTiling, ConvolutionTiling
from mlir_sched.transform_scripts.module import TransformModule


@dataclass(frozen=True)
class Part:
    """The modules that one step adds to a space.

    Attributes:
        name: The part's name in tables.
        modules: Modules by name, which replace those of earlier steps; None stands for the module of the whole space.
    """

    name: str
    modules: Mapping[str, TransformModule | None]


PARTS = (
    Part(
        "one level of tiles",
        {
            "contraction": ContractionTiling(names=("cache",), cache_levels=False, tails=()),
            "elementwise": None,
            "parallel_distribution": None,
            "lowering": None,
        },
    ),
    Part("cache levels", {"contraction": ContractionTiling(names=("cache",), tails=())}),
    Part("fusion in registers", {"contraction": ContractionTiling(tails=())}),
    Part("split reductions", {"reduction": None}),
    Part("convolutions", {"convolution": ConvolutionTiling(peel=False)}),
    Part("tails", {"contraction": None, "convolution": None}),
)
"""The first parts; every other module of the whole space follows as a part of its own, in the order of the space."""


@dataclass(frozen=True)
class NamedSpace:
    """A space with the name of the last part that was added to it."""

    name: str
    space: Space


def growing_spaces(whole: Space, parts: Sequence[Part] = PARTS) -> tuple[NamedSpace, ...]:
    """Return one space per part, which also has all earlier parts; the last one is the whole space."""
    planned = {name for part in parts for name in part.modules}
    others = [Part(module.name, {module.name: None}) for module in whole.modules if module.name not in planned]
    chosen: dict[str, TransformModule | None] = {}
    spaces = []
    for part in (*parts, *others):
        chosen |= part.modules
        modules = [chosen[module.name] or module for module in whole.modules if module.name in chosen]
        spaces.append(NamedSpace(part.name, Space(modules)))
    return tuple(spaces)
