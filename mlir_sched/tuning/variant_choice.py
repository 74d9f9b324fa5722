"""The program variants that a run by time compiles: as many as a part of its minutes has room for.

To compile all variants of a large model would leave no time for the search.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from mlir_sched.database import RecordStore
from mlir_sched.database.record import measuring_context
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.compile_policy import CompilePolicy, Foreseen, Sites
from mlir_sched.program.variants.profile_features import profile_features
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tensors.values import digests_of
from mlir_sched.tuning.budget import EXPLORATION, compiling_s, searching_s, too_short
from mlir_sched.tuning.journal import known_decisions
from mlir_sched.tuning.ledger import Ledger
from mlir_sched.tuning.options import NO_TRANSFER, TuneOptions
from mlir_sched.tuning.variant_prediction import LEAST_PROGRAMS, TOO_FEW, KnownPrograms, predicted

T = TypeVar("T")
MOST_COMPILED, LARGE_BUILD_S = 2, 1.5
"""Most variants that a run by time compiles beside the default, for programs that take at least the second number of
seconds to compile: each further variant takes the time of several candidates."""


@dataclass
class VariantChoice(CompilePolicy):
    """The choice of the variants that are compiled, made once per run: a resumed run makes the same choice.

    Attributes:
        store: Where the decision is kept.
        key: Beginning of the keys of its decisions in the store.
        until: Time by ``time.monotonic()`` at which all variants should be compiled and timed; infinite for a run by
            trials, which compiles all variants.
        end: Time by ``time.monotonic()`` at which the search should end; infinite for a run by trials.
        context_key: What the speed of programs depends on beside the program, and what bounds them.
        target: The machine, with the threads of the run.
        ledger: What variants take to be compiled and timed.
        programs: What variants are predicted from; None where they are not to be.
        fresh: Whether this process was asked for a fresh start, so that no store counts.
        begins_from: What the searches begin from: runs that begin from something else are others.
        minutes: Minutes of the whole run; None for a run by trials.
        note: Is told where they are too few for the program.
    """

    store: RecordStore
    key: str
    until: float
    end: float
    context_key: str
    target: Target
    ledger: Ledger
    programs: KnownPrograms | None = None
    fresh: bool = False
    begins_from: str = NO_TRANSFER
    minutes: float | None = None
    note: Callable[[str], None] = lambda _: None
    _compiled: list[str] = field(default_factory=list)
    _failed: int = 0
    _favoured: str = ""

    @classmethod
    def of(
        cls,
        path: Path,
        target: Target,
        options: TuneOptions,
        store: RecordStore,
        start: float,
        *,
        generation: int = 0,
        user_file: Path | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> Self:
        """Return the choice of a run on a model file that began at ``start``, in a generation of the store.

        Args:
            user_file: The user's store; None for none.
            note: Is told what costs predictions, and where the minutes are too few for the program.
        """
        file = path.stat()
        model = (str(path.resolve()), file.st_size, file.st_mtime_ns)
        context_key = measuring_context(target, generation=generation, **options.bounds())
        own = (context_key, options.minutes, options.seed, digests_of(options.values))
        predicts = ("predicted variants",) if options.predict_variants else ()
        run = (*model, target.key, *own, *predicts, *(("one-shot",) if options.is_one_shot else ()))
        key = "variants-" + hashlib.sha256(repr(run).encode()).hexdigest()[:16]
        until, end = start + compiling_s(options), start + searching_s(options)
        known = KnownPrograms(store, user_file, context_key, options.fresh, note) if predicts else None
        return cls(
            store,
            key,
            until,
            end,
            context_key,
            target,
            Ledger.of(target, store),
            known,
            options.fresh,
            options.begins_from,
            options.minutes,
            note,
        )

    def known(self, default: Model) -> Mapping[str, Value]:
        """Return what an earlier run decided about this program, or a similar one; nothing in a run by trials."""
        if not self.hurried:
            return {}
        return self._decide("known", lambda: dict(known_decisions(self.store, self.context_key, default)))

    def should_compile(self, name: str) -> bool:
        """Say whether a further variant is to be compiled: the one that the profile speaks for even late."""
        until = self.end if name == self._favoured else self.until
        return self._decided(name, wanted=self._has_time(until=until))

    def should_compile_beside(self, name: str, *, extended: bool) -> bool:
        """Say whether a variant is to be compiled beside another one that is likely to become faster.

        Both variants need candidates before one can be chosen. Of a large program a variant is skipped that another one
        extends.
        """
        exploring_s = EXPLORATION * (self.end - time.monotonic())
        has_time = 2 * self.ledger.covering_s <= exploring_s and self._has_time()
        return self._decided(name, wanted=has_time and not (extended and self.ledger.build_s >= LARGE_BUILD_S))

    def note_failure(self, name: str) -> None:
        """Note that a variant that was wanted does not compile: another one may be compiled in its place."""
        assert name
        self._failed += 1

    def has_time_again(self) -> bool:
        """Say whether there is time to compile a variant once more, and to time all that are compiled."""
        return self._has_time(more=0)

    def left_as_they_were(self, name: str, find: Callable[[], Sites]) -> Sites:
        """Return the sites of a variant that stay as they were, the same in every run that goes on with this one."""
        return self._decide(f"kept-{name}", find)

    def favoured(self, name: str) -> str:
        """Return the variant that the default's profile speaks for, the same in every run that goes on with this.

        A large part of the default's time is in dispatches that can have no script: without this variant little is to
        be found.
        """
        self._favoured = self._decide("expected", lambda: name)
        return self._favoured

    @property
    def foresees(self) -> bool:
        """Whether the user wants variants to be predicted, and enough programs were known when the run began."""
        known = self.programs
        if known is None:
            return False
        count = self._decide("known-programs", lambda: known.count)
        if count >= LEAST_PROGRAMS:
            return True
        known.note(TOO_FEW.format(count, LEAST_PROGRAMS))
        return False

    def foreseen(self, default: BuiltVariant, variants: Sequence[Variant]) -> Foreseen | None:
        """Return what is predicted of variants, the same in every run that goes on with this one."""
        if self.programs is None or not self.foresees:
            return None
        known, plans = self.programs, [variant.plan for variant in variants]

        def now() -> dict[str, Any] | None:
            if known.count < LEAST_PROGRAMS:  # the process that knew more ended before it predicted
                return None
            found = asdict(predicted(known.all, profile_features(default, self.target), plans))
            return found | {"order": list(found["order"])}

        found = self._decide("foreseen", now)
        return Foreseen(tuple(found["order"]), found["ratios"], found["programs"]) if found else None

    def refines_at_once(self) -> bool:
        """Say whether only what refines the variant is compiled that the default's profile speaks for.

        Without scripts a refinement is slower than the variant: its dispatches need candidates first.
        """
        searching_s = self.end - time.monotonic() - self.ledger.build_s
        at_once = self.hurried and self.ledger.overtaking_s <= searching_s
        return self._decide("at-once", lambda: at_once)

    def _decide(self, name: str, make: Callable[[], T]) -> T:
        """Return what a process of this run decided first under a name; if none has, what ``make`` returns now."""
        return self.store.decide(f"{self.key}-{name}", make)

    def _has_time(self, *, more: int = 1, until: float | None = None) -> bool:
        """Say whether there is time to compile a variant, and to time all that are compiled and so many more.

        Args:
            until: Time by ``time.monotonic()`` at which this should be done, that of all variants by default.
        """
        compiled = len(self._compiled) - self._failed
        if more and self.ledger.build_s >= LARGE_BUILD_S and compiled >= MOST_COMPILED:
            return False
        needed_s = self.ledger.variants_s(compiled + more)
        return time.monotonic() + needed_s < (self.until if until is None else until)

    def _decided(self, name: str, *, wanted: bool) -> bool:
        """Return whether a variant was wanted when the run began; note ``wanted`` where no process has decided that."""
        if not self.hurried:
            return True
        known: list[str] | None = self.store.decided(f"{self.key}-compiled")
        wanted = wanted if known is None else name in known
        self._compiled += [name] if wanted else []
        return wanted

    @property
    def hurried(self) -> bool:
        """Whether how long variants take to be timed decides how many are compiled."""
        return self.until != math.inf

    @property
    def is_fresh(self) -> bool:
        """Whether a process of the run was asked for a fresh start, the same in every run that goes on with it."""
        return self._decide(f"is-fresh-{self.begins_from}", lambda: self.fresh)

    def note_costs(self, *, call_s: float, build_s: float) -> None:
        """Note the seconds that the default takes per call, 0 at first, and took to be compiled, as others may."""
        self.ledger.call_s, self.ledger.build_s = call_s, build_s
        fresh = self.is_fresh  # decided before any further variant is compiled
        if self.programs is not None and self.programs.fresh != fresh:
            self.programs = replace(self.programs, fresh=fresh)
        if call_s and (text := too_short(self.minutes, self.ledger)):
            self.note(text)

    def dominates(self, name: str, *, far_faster: bool) -> bool:
        """Say whether a variant dominates all others, the same in every run that goes on with this one."""
        return self._decide(f"settled-{name}", lambda: far_faster)

    def short(self, names: Sequence[str]) -> Sequence[str]:
        """Return the names of the variants that are also timed in the calling thread, given those short by now.

        A program that takes almost :data:`~mlir_sched.program.variants.choosing.SHORT_S` is above it in one process and
        below it in another: a resumed run would have other variants, and so begin anew.
        """
        return self._decide("short", lambda: list(names))

    def keep(self) -> None:
        """Keep the decision, unless the store has one already."""
        if self.hurried:
            self._decide("compiled", lambda: self._compiled)
