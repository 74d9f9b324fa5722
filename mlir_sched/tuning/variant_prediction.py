"""Predictions of the variants of a program, from what runs on other programs measured on the same machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mlir_sched.corpus.places import users_beside
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram, context_parts, machine_of
from mlir_sched.errors import UserError
from mlir_sched.models.variant_model import VariantModel
from mlir_sched.program.plan import Plan
from mlir_sched.program.program_space import VARIANT
from mlir_sched.program.variants.compile_policy import Foreseen
from mlir_sched.program.variants.foreseeing import foreseen, worth
from mlir_sched.program.variants.profile_features import FEATURES
from mlir_sched.text import counted

LEAST_PROGRAMS = 8
"""Fewest programs from which variants are predicted."""
TOO_FEW = "variants are not predicted yet: {} of at least {} known programs"
"""What is said where there are fewer: how many there are, and have to be."""
UNREADABLE = "variants are not predicted from {} whose context cannot be read"
"""What is said of programs of which it is not known where they were measured."""


@dataclass(frozen=True)
class KnownPrograms:
    """The programs that a run may predict its variants from.

    Attributes:
        store: The run's own store.
        user_file: The user's store; None for none, and it need not be there.
        context_key: The context of the run's programs.
        fresh: Whether the run is a fresh start, so that it knows none.
        note: Is told what cannot be read of the stores, and that there are too few programs.
    """

    store: RecordStore
    user_file: Path | None
    context_key: str
    fresh: bool = False
    note: Callable[[str], None] = lambda _: None

    @cached_property
    def all(self) -> tuple[StoredProgram, ...]:
        """The programs of this machine with measured variants, as they were when they were first asked for.

        Each is there once per number of threads, with all that was measured of it. The run's own program may be one of
        them. Those of the run's own store count since the last fresh start.
        """
        if self.fresh:
            return ()
        own, generation = machine_of(self.context_key), context_parts(self.context_key)["generation"]
        users, here = self._readable(self._of_user()), self._readable(self.store.programs())
        here = [p for p in here if context_parts(p.context_key).get("generation") == generation]
        found = dict[tuple[str, ...], StoredProgram]()
        for each in (*reversed(users), *reversed(here)):  # the last one that was stored comes last
            if each.features and each.variants and machine_of(each.context_key) == own:
                key = context_parts(each.context_key)["threads"], *each.task_keys
                found[key] = each.beside(found.get(key))
        return tuple(found[key] for key in sorted(found))

    @property
    def count(self) -> int:
        """How many programs there are; one that ran on several numbers of threads counts once."""
        return _count(self.all)

    def _of_user(self) -> tuple[StoredProgram, ...]:
        try:
            users = users_beside(self.store, self.user_file)
            if users is None:
                return ()
            with users:
                return users.programs()
        except (UserError, OSError) as error:
            self.note(f"variants are not predicted from your store over all runs: {error}")
            return ()

    def _readable(self, programs: Sequence[StoredProgram]) -> list[StoredProgram]:
        """Return the programs whose contexts say on how many threads they ran; how many others there are is noted."""
        known = [each for each in programs if "threads" in context_parts(each.context_key)]
        if len(known) < len(programs):
            self.note(UNREADABLE.format(counted(len(programs) - len(known), "program")))
        return known


def predicted(programs: Sequence[StoredProgram], features: Mapping[str, float], plans: Sequence[Plan]) -> Foreseen:
    """Return what is predicted of the variants of a program.

    Args:
        programs: What was measured.
        features: Of the program (:func:`~mlir_sched.program.variants.profile_features.profile_features`).
        plans: Its variants but the default.
    """
    worths = [worth(each.variants, plans, str(each.decisions.get(VARIANT, ""))) for each in programs]
    model = VariantModel()
    model.fit(
        np.array([_row(each.features) for each in programs]),
        {plan.name: np.array([each.get(plan.name, np.nan) for each in worths]) for plan in plans},
    )
    return foreseen(plans, model.predict(np.array(_row(features))), _count(programs))


def _count(programs: Sequence[StoredProgram]) -> int:
    return len({each.task_keys for each in programs})


def _row(features: Mapping[str, float]) -> list[float]:
    return [features.get(name, np.nan) for name in FEATURES]
