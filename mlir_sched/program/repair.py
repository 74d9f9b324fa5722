"""The repair of a program that IREE is known to compile wrong, and what is said of it."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from mlir_sched.library import RewriteScript
from mlir_sched.program.rewrites.repair.repaired import REPAIRS
from mlir_sched.program.variant import Variant
from mlir_sched.text import seconds
from mlir_sched.tuned_folder.result import Repair

COMPARED = "all figures compare with the repaired program without scripts"


@dataclass(frozen=True)
class ProgramRepair:
    """The repair that a program needs before anything else.

    Attributes:
        script: Its script; None for a program that IREE is not known to compile wrong.
        forms: Names of the forms that the program has (``program/rewrites/repair/``).
    """

    script: RewriteScript | None = None
    forms: tuple[str, ...] = ()

    def of(self, variant: Variant) -> Variant:
        """Return a variant without rewrites, repaired."""
        return replace(variant, rewrite=self.script)


NO_REPAIR = ProgramRepair()
"""The repair of a program that IREE is not known to compile wrong."""


def repair_notes(repair: Repair | None) -> list[str]:
    """Return a sentence on what was repaired, and one on plain ``iree-compile``'s code; none for no repair."""
    return [] if repair is None else [*repaired_texts(repair.forms), f"{_plain(repair)}; {COMPARED}"]


def repaired_texts(forms: Collection[str]) -> list[str]:
    """Return a sentence on each form, given by name, of a program that was repaired."""
    return [f"repaired: {each.form.text}" for each in REPAIRS if each.form.name in forms]


def _plain(repair: Repair) -> str:
    took = "" if repair.plain_s is None else f", and its dispatches take {seconds(repair.plain_s)} per call"
    if repair.wrong:
        return f"plain iree-compile's code is WRONG ({repair.wrong}){took}"
    return f"plain iree-compile's code was not seen to be wrong{took}"
