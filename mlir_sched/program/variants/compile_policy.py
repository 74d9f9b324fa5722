"""What decides which program variants are compiled, and why variants are left out."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from mlir_sched.program.variant import BuiltVariant, Variant
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
NOT_SETTLED = (
    "without a search only the variant is compiled that an earlier run, a prediction or the profile speaks for"
)
"""Why a variant is left out of a run without a search."""
FORESEEN_BEHIND = "others come first by the prediction"
"""Why a variant is left out by a prediction."""
NOT_FORESEEN = "too few known programs measured it to predict it, and others come first"
"""Why a variant without a prediction is left out where variants are predicted."""
NOT_TRIED = (
    NO_TIME_TO_COMPILE,
    EXTENDED,
    CHOSEN_BEFORE,
    REFINED_AT_ONCE,
    NOT_SETTLED,
    FORESEEN_BEHIND,
    NOT_FORESEEN,
)
"""Why variants are left out that were not compiled."""
EXCEPT_FOR = "it competes except for {}: {}"
"""What becomes of a variant of which IREE does not compile some sites, and what it says of the whole variant."""
Sites = list[list[str]]
"""Sites as JSON data."""


@dataclass(frozen=True)
class Foreseen:
    """What is predicted of a program's variants.

    Attributes:
        order: Names of the variants that have a chance, the most promising first.
        ratios: How many times as fast as the default each is predicted to be, without its scripts, by name; of a
            variant that refines another one, what it refines. Those of which too little was measured are missing.
        programs: From how many programs that follows.
    """

    order: tuple[str, ...]
    ratios: Mapping[str, float]
    programs: int


class CompilePolicy:
    """Compiles all variants, unless one of them dominates the others (``early_decisions.py``).

    Attributes:
        why_not: Why a variant is left out that is not to be compiled.
        trusts_earlier_runs: Whether the variant that an earlier run chose dominates all others, and so does one that
            refines another.
    """

    why_not = NO_TIME_TO_COMPILE
    trusts_earlier_runs = False

    def should_compile(self, name: str) -> bool:  # noqa: ARG002 - a run by time asks the clock
        """Say whether a variant other than the default is to be compiled."""
        return True

    def settle(self, names: Collection[str]) -> None:
        """Hear which variants something speaks for, before others than the default are compiled.

        That is the one that an earlier run chose, else those that a prediction or the default's profile speaks for.
        """

    def should_compile_beside(self, name: str, *, extended: bool) -> bool:  # noqa: ARG002 - as above
        """Say whether a variant is to be compiled beside another one that is likely to become faster.

        Args:
            extended: Whether the other one extends it, and was not only chosen by an earlier run.
        """
        return self.should_compile(name)

    def note_failure(self, name: str) -> None:
        """Hear that a variant that should be compiled does not compile."""

    def has_time_again(self) -> bool:
        """Say whether there is time to compile once more a variant that does not compile as it is."""
        return True

    def left_as_they_were(self, name: str, find: Callable[[], Sites]) -> Sites:  # noqa: ARG002 - a resumed run knows
        """Return the sites of a variant that stay as they were, as none else compiles; none where that is of no use.

        Args:
            find: Finds them, each as its two names (:class:`~mlir_sched.program.plan.KeptSite`).
        """
        return find()

    def favoured(self, name: str) -> str:
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

    def dominates(self, name: str, *, far_faster: bool) -> bool:  # noqa: ARG002 - a resumed run decided by name
        """Say whether one of ``DECIDED_EARLY`` dominates all other variants, as it does by what was measured now."""
        return far_faster

    @property
    def hurried(self) -> bool:
        """Whether how long variants take to be timed decides how many are compiled."""
        return False

    def note_costs(self, *, call_s: float, build_s: float) -> None:
        """Hear how many seconds the default takes per call, 0 at first, and took to be compiled, as others may."""

    @property
    def foresees(self) -> bool:
        """Whether variants may be predicted, which takes the profile of the default."""
        return False

    def foreseen(self, default: BuiltVariant, variants: Sequence[Variant]) -> Foreseen | None:  # noqa: ARG002
        """Return what is predicted of the variants of a program; None where nothing is.

        Args:
            default: The default, with its profile.
            variants: All others.
        """
        return None

    def short(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the variants that are also timed in the calling thread, given those short by now."""
        return names
