"""What a choice of program variants may decide, and why variants are left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir_sched.sampling import Value
from mlir_sched.tasks import Model

NO_TIME_TO_COMPILE = "no time was left to compile it"
"""Why a variant is left out of a run with a short time budget."""
EXTENDED = "the time is better spent on the variant that extends it"
"""Why a variant is left out of a run by time where another one has all of its rewrite and more."""
CHOSEN_BEFORE = "the run is too short to tune it beside the variant that an earlier run chose"
"""Why a variant is left out of a run with a short time budget where the store knows such a variant."""
REFINED_AT_ONCE = "the variant that refines it was compiled at once"
"""Why a variant is left out that is no faster with scripts than another one, and that the profile speaks for."""


class Choice:
    """The choice of the variants that are compiled: all of them, unless a variant settles it (``settling.py``)."""

    def wants(self, name: str) -> bool:  # noqa: ARG002 - a run by time asks the clock
        """Say whether a variant other than the default is to be compiled."""
        return True

    def wants_beside(self, name: str, *, extended: bool) -> bool:  # noqa: ARG002 - a run by time has no time for both
        """Say whether a variant is to be compiled beside another one that is likely to become faster.

        Args:
            name: Its name.
            extended: Whether the other one extends it, and was not only chosen by an earlier run.
        """
        return self.wants(name)

    def fails(self, name: str) -> None:
        """Note that a variant that was wanted does not compile."""

    def expected(self, name: str) -> str:
        """Return the name of the variant that the default's profile speaks for, empty for none.

        Args:
            name: Its name by what was measured now: a run that goes on has decided that before.
        """
        return name

    def refines_at_once(self) -> bool:
        """Say whether only what refines the variant is compiled that the default's profile speaks for."""
        return False

    def known(self, default: Model) -> Mapping[str, Value]:  # noqa: ARG002 - a run by time asks its store
        """Return what an earlier run decided about this program, or a similar one; empty where nothing is known."""
        return {}

    def settles(self, name: str, *, far_faster: bool) -> bool:  # noqa: ARG002 - a run that goes on has decided it by name
        """Say whether one of ``SETTLING`` leaves no other variant a chance.

        Args:
            name: Its name.
            far_faster: Whether it does by what was measured now.
        """
        return far_faster

    @property
    def hurried(self) -> bool:
        """Whether how long variants take to be timed decides how many are compiled."""
        return False

    def expects(self, *, call_s: float, build_s: float) -> None:
        """Note the seconds that the default takes per call, 0 at first, and took to be compiled, as others may."""

    def short(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the variants that are also timed in the calling thread.

        Args:
            names: Those that are short by what was measured now.
        """
        return names
