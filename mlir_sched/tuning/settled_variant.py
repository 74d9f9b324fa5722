"""The one program variant of a run without a search, settled before it is timed."""

from __future__ import annotations

from collections.abc import Collection, Set
from dataclasses import dataclass

from mlir_sched.program.variants.compile_policy import NOT_SETTLED
from mlir_sched.tuning.variant_choice import VariantChoice


@dataclass
class SettledVariant(VariantChoice):
    """The choice of variants without a search: at most one is compiled beside the default.

    That is the one that an earlier run on such a program chose, which may be none, else the first one that compiles of
    those that a prediction or the default's profile speaks for.
    """

    why_not = NOT_SETTLED
    trusts_earlier_runs = True
    _settled: Set[str] = frozenset()

    @property
    def hurried(self) -> bool:
        """Whether the default is profiled before other variants are compiled: always."""
        return True

    def settle(self, names: Collection[str]) -> None:
        """Hear which variants something speaks for."""
        self._settled = frozenset(names)

    def should_compile(self, name: str) -> bool:
        """Say whether a variant is to be compiled: the first one that compiles of those that something speaks for."""
        first = len(self._compiled) == self._failed
        return self._decided(name, wanted=name in self._settled and first and self._has_time(until=self.end))

    def should_compile_beside(self, name: str, *, extended: bool) -> bool:
        """Say whether a variant is to be compiled beside another one: never."""
        del extended
        return self._decided(name, wanted=False)

    def refines_at_once(self) -> bool:
        """Say whether only what refines the variant is compiled that the profile speaks for: scripts come at once."""
        return True
