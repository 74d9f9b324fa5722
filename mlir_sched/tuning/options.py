"""The options of a tuning run."""

import math
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.targets.target import LOCAL_TASK
from mlir_sched.tensors.given_values import Values, function_values
from mlir_sched.tensors.values import FunctionValues

DEFAULT_TRIALS_PER_TASK = 64
"""Candidates per tunable task when no budget is given. Source: one round of MetaSchedule (``num_trials_per_iter``)."""
MOST = {"trials": 10**7, "minutes": 60 * 24 * 366, "round_size": 10**4, "threads": 10**4}
"""Largest numbers that are accepted: a year, and more candidates than a year has time for. They bound times and sizes
of lists that a run computes from its budget; a target bounds the threads, too."""

NO_TRANSFER, ALL_KNOWN = "off", "auto"
"""What a search begins from, where no further store is given: nothing, or all that is known."""


@dataclass(frozen=True)
class TuneOptions:
    """What a user decides about a run.

    Attributes:
        target: What to compile for.
        trials: Candidates to try over all tasks; by default 64 per task that can be tuned, unless minutes are given.
            With 0 there is no search: a few candidates per task are measured, chosen from what is known (``transfer``,
            ``templates``).
        minutes: Wall-clock minutes for the whole run, in place of trials or beside 0 trials; a part is set aside for
            emission and its checks, whose time is estimated.
        stop_below: Stop the search once its next minute is expected to save less than this share of the program's time,
            above 0 and below 1; by default the search goes on until the trials or minutes are spent.
        seed: Seed of every choice of the search, from 0 to 2^63 - 1.
        threads: Threads the tuned program may run on; by default as many as IREE's ``local-task`` starts on this
            machine: one per physical core that this process may use.
        device: ``local-task`` (several threads only) always runs the program on IREE's worker threads; None lets the
            search choose ``local-sync``, which runs it on the calling thread, where that is faster.
        round_size: Candidates per round; a round is compiled, then timed.
        templates: Try first, for every dispatch, what transform modules guess from its sizes and the machine's, in half
            of a round at most. By default on without a search and off with one: docs/search-strategies.md says what it
            is worth.
        predict_variants: Compile only those variants of the program, at most two, that are predicted to be the fastest
            from what runs on eight or more programs measured on this machine (the run's store, the user's store). Off
            by default: docs/search-strategies.md says what it is worth.
        fresh: Start anew: no record of an earlier run is used.
        replace: Replace whatever has the name of a file of a result in the output folder, and keep the records there.
            By default only an earlier result of the same model is replaced.
        max_weights: Most bytes of weights that calls of the emitted program may read, relative to what those of plain
            ``iree-compile`` read, at least 1; by default nothing is left out for them.
        user_store: The file to which the run also adds what it measures, or ``off``; by default that of the environment
            variable ``MLIR_SCHED_STORE``, else one in the user's data folder, and none where ``CI`` is set.
        transfer: What the search begins from: ``off``; ``auto`` for the candidates of other dispatches that the run's
            store, the user's store and mlir-sched itself have; or a further store beside these, as a file or SQLAlchemy
            URL, which stays as it is. By default ``auto`` without a search and ``off`` with one:
            docs/search-strategies.md says what it is worth.
        check_only: Run nothing: candidates for a device that need not be there (``cuda:sm_90``) are assembled, and a
            model estimates their times.
        inputs: Inputs that the whole program is checked and timed with beside drawn ones: a list of arrays, numbers,
            paths of ``.npy`` files or texts as ``iree-run-module --input`` takes them, one per input; with several
            public functions a list per function's name. Files are read at once.
        reference: What the outputs have to be for these inputs, in the same form; by default the untuned results.
        values: Inputs and reference as they were read, by function.
    """

    target: str = "llvm-cpu"
    trials: int | None = None
    minutes: float | None = None
    stop_below: float | None = None
    seed: int = 0
    threads: int | None = None
    device: str | None = None
    round_size: int = 8
    templates: bool | None = None
    predict_variants: bool = False
    fresh: bool = False
    replace: bool = False
    max_weights: float | None = None
    user_store: str | Path | None = None
    transfer: str | Path | None = None
    check_only: bool = False
    inputs: Values = field(default=(), compare=False, repr=False)
    reference: Values = field(default=(), compare=False, repr=False)
    values: tuple[FunctionValues, ...] = field(init=False)

    def __post_init__(self) -> None:
        if self.trials and self.minutes is not None:
            raise UserError("give a budget in trials or in minutes, not both")
        for name, most in MOST.items():
            _require_number(name, getattr(self, name), most, whole=name != "minutes", zero=name == "trials")
        if self.stop_below is not None and not 0 < self.stop_below < 1:
            raise UserError(
                f"stop_below must be a share above 0 and below 1, such as 0.005 for 0.5%, but got {self.stop_below}"
            )
        if self.stop_below is not None and self.is_one_shot:
            raise UserError("without a search (0 trials) stop_below has no use: leave it out, or give trials")
        if self.max_weights is not None and not 1 <= self.max_weights < math.inf:
            raise UserError(
                f"max_weights must be at least 1, which is what plain iree-compile needs, but got {self.max_weights}"
            )
        if not self.begins_from:
            raise UserError("give off, auto or a store to begin from, but got an empty name")
        if self.fresh and self.transfer_store:
            raise UserError(
                "a fresh start uses no records: leave out the further store to begin from, or do not start anew"
            )
        if self.target.endswith(":"):
            raise UserError(f"the target {self.target!r} names no device behind the colon; leave the colon out")
        if self.device not in (None, LOCAL_TASK):
            raise UserError(f"the device is {LOCAL_TASK}, or is left to the search; got {self.device}")
        if self.device and self.threads == 1:
            raise UserError(f"the device {self.device} needs several threads, but threads is 1")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**63:
            raise UserError(f"the seed must be a whole number from 0 to {2**63 - 1}, but got {self.seed}")
        values = function_values(self.inputs, self.reference)
        if values and self.check_only:
            raise UserError("without a device nothing is run: --input and --reference have no use with --check-only")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "inputs", {each.function: each.inputs for each in values})  # not read again
        object.__setattr__(self, "reference", {each.function: each.reference for each in values if each.reference})

    @property
    def is_one_shot(self) -> bool:
        """Whether candidates are chosen without a search."""
        return self.trials == 0

    @property
    def begins_from(self) -> str:
        """What is known of other dispatches: ``off``, ``auto`` or a further store."""
        if self.transfer is None:
            return ALL_KNOWN if self.is_one_shot else NO_TRANSFER
        return str(self.transfer)

    @property
    def uses_templates(self) -> bool:
        """Whether what transform modules guess is tried."""
        return self.is_one_shot if self.templates is None else self.templates

    @property
    def transfer_store(self) -> str:
        """The further store that the search begins from, too; empty for none."""
        return "" if self.begins_from in (NO_TRANSFER, ALL_KNOWN) else self.begins_from

    @property
    def result_target(self) -> str:
        """What the result is for: a kind of target, and the device, too, where no device of this machine decides it."""
        return self.target if self.check_only else self.target.partition(":")[0]

    def search_key(self) -> tuple[int | str, ...]:
        """Return what tells ways to search apart: a part of the keys of runs and searches, which stores hold."""
        asked = {
            "templates": self.uses_templates,
            "one-shot": self.is_one_shot,
            "predicted variants": self.predict_variants,
        }
        return self.seed, self.round_size, *(name for name, is_on in asked.items() if is_on)

    def budget_key(self) -> tuple[float | None, ...]:
        """Return what tells budgets apart: a part of the keys of runs, which go on with searches of other budgets."""
        return self.trials, self.minutes, *(() if self.stop_below is None else (self.stop_below,))

    def bounds(self) -> dict[str, str]:
        """Return what bounds programs: a part of the keys of runs and of decisions about programs; empty by default."""
        return {} if self.max_weights is None else {"max_weights": repr(float(self.max_weights))}


def share_of(text: str) -> float:
    """Return a share that is written as ``0.5%`` or as ``0.005``.

    Raises:
        UserError: It is neither.
    """
    try:
        return float(Decimal(text.removesuffix("%")) / (100 if text.endswith("%") else 1))
    except InvalidOperation:
        raise UserError(f"a share is a number such as 0.5% or 0.005, but got {text!r}") from None


def _require_number(name: str, value: float | None, most: int, *, whole: bool, zero: bool) -> None:
    """Refuse a number that is not above 0, or 0 where that is allowed, and at most ``most``; None is allowed.

    Raises:
        UserError: See above.
    """
    if value is None:
        return
    if not (value > 0 or (zero and value == 0)):
        raise UserError(f"{name} must be {'at least' if zero else 'above'} 0, but got {value}")
    if value > most:
        raise UserError(f"{name} must be at most {most}, but got {value}")
    if whole and not isinstance(value, int):
        raise UserError(f"{name} must be a whole number, but got {value}")
