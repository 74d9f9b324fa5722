"""The interface of a choice of algorithms per site of a program."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram


class SiteKind(ABC):
    """Sites of a program that one of two algorithms computes, such as all convolutions of one shape.

    Every kind is a frozen dataclass, as rewrites are.

    Attributes:
        own: Name of the algorithm that a site has without a decision.
        other: Name of the other algorithm.
    """

    own: ClassVar[str]
    other: ClassVar[str]

    def site_name(self, shape: str) -> str:
        """Return the name of the site of a shape, unique among the sites of all kinds; by default the shape itself."""
        return shape

    @abstractmethod
    def rewrite_name(self, shape: str) -> str:
        """Return the name of what computes a site by the other algorithm."""

    @abstractmethod
    def has_choice(self, rewrites: Sequence[ProgramRewrite]) -> bool:
        """Say whether the sites have a choice in programs that are rewritten by some rewrites."""

    @abstractmethod
    def with_other(self, rewrites: tuple[ProgramRewrite, ...], shapes: tuple[str, ...]) -> tuple[ProgramRewrite, ...]:
        """Return rewrites that compute the sites of some shapes by the other algorithm.

        Args:
            rewrites: Rewrites with a choice (:meth:`has_choice`).
            shapes: The shapes, at least one.
        """

    @abstractmethod
    def shapes(self, program: StagedProgram) -> list[str]:
        """Return the shapes of the sites that the other algorithm can compute, in the program's order.

        Args:
            program: The program after IREE's ``abi`` phase, and what rewrites make of it.
        """
