"""A program that shows results of its dispatches: it returns them beside its own results."""

from collections.abc import Mapping
from dataclasses import dataclass

from mlir_sched.compiler.tuned_dispatch import TunedDispatch
from mlir_sched.payload import TensorSpec


@dataclass(frozen=True)
class Recipe:
    """How a program is compiled from its model.

    Attributes:
        flags: Compiler flags, without those that name the library.
        library: Text of its transform library; empty for none.
        applied: The dispatches that have a script of the library, as they were proven.
    """

    flags: tuple[str, ...]
    library: str = ""
    applied: tuple[TunedDispatch, ...] = ()


@dataclass(frozen=True)
class Inside:
    """What of a model is verified by results of its dispatches, as its own results say nothing.

    Attributes:
        functions: The public functions whose results say nothing.
        untuned: How the program is compiled whose results are right.
    """

    functions: tuple[str, ...]
    untuned: Recipe


@dataclass(frozen=True)
class ShownResult:
    """A result that a function returns beside its own.

    Attributes:
        maker: Symbol of the dispatch that makes it, or the op whose body calls the dispatches that do.
    """

    maker: str
    spec: TensorSpec


@dataclass(frozen=True)
class ShownFunction:
    """What a function shows.

    Attributes:
        results: The results, in the order in which the function returns them after its own.
        behind: Symbols of the dispatches that any of these results depends on.
    """

    results: tuple[ShownResult, ...]
    behind: frozenset[str]

    @property
    def specs(self) -> tuple[TensorSpec, ...]:
        """The tensors of the results."""
        return tuple(result.spec for result in self.results)


@dataclass(frozen=True)
class ShownProgram:
    """A compiled program that shows results of its dispatches.

    Attributes:
        functions: What each function shows, by name.
        dispatches: Digest of the code of all dispatches before any script.
        applied: The dispatches that have a script, and their code.
    """

    vmfb: bytes
    functions: Mapping[str, ShownFunction]
    dispatches: str
    applied: frozenset[TunedDispatch]
