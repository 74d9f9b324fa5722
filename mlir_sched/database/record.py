"""The record of one measured candidate, and of the task it belongs to: what the record store keeps."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from mlir_sched import __version__
from mlir_sched.outcome import Outcome
from mlir_sched.payload import Dispatch
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace

CHOSEN = ("threads", "calls", "generation", "max_weights")
"""Parts of a context that a user chooses, or that follow from these: what differs in them alone is of one machine."""


class Origin(StrEnum):
    """Who made the code of a candidate."""

    UNTUNED = "untuned"
    """The compiler alone, under the task's flags."""
    SCRIPT = "script"
    """A transform script."""


def utc_now() -> str:
    """Return the present time in UTC as ISO 8601 with microseconds."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def context_key(**parts: str | int) -> str:
    """Return a readable key of what a timing depends on beside the task: ``cpu=EPYC 9454, threads=1``.

    The parts are sorted by name, so that the order of the arguments does not matter.
    """
    return ", ".join(f"{name}={parts[name]}" for name in sorted(parts))


def context_parts(key: str) -> dict[str, str]:
    """Return the parts of a :func:`context_key` by name; none of another text."""
    return dict(part.split("=", 1) for part in re.split(r", (?=\w+=)", key) if "=" in part)


def machine_of(key: str) -> dict[str, str]:
    """Return the parts of a :func:`context_key` that a user does not choose: the machine, and versions."""
    return {name: value for name, value in context_parts(key).items() if name not in CHOSEN}


def measuring_context(target: Target, *, generation: int = 0, **bounds: str) -> str:
    """Return the context key of timings that this version of mlir-sched measures on this machine.

    Args:
        target: Says on how many threads of which machine programs run.
        generation: How often the user asked for a fresh start.
        bounds: What bounds whole programs, where their decisions are kept.
    """
    chained = {"calls": "chained"} if target.chain_length else {}
    machine = dict(target.machine) | chained
    return context_key(**machine, threads=target.cores, tool=__version__, generation=generation, **bounds)


def script_key(script: str) -> str:
    """Return the candidate key of a script: a digest of its text."""
    return hashlib.sha256(script.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class StoredTask:
    """What the store keeps of a task, for people and for look-ups.

    Attributes:
        key: ``Task.key``; it stands for the code of the dispatch, the target, the compiler and its flags.
        name: The dispatch's symbol in the model it was first seen in.
        description: Its ops and their loops on one line.
        dispatch: Its ops; None where it is not tunable.
        target: What it was tuned for where it was stored first: the code is the same for all targets with its key, and
            the machine and the threads of a record are in the record's context.
    """

    key: str
    name: str
    description: str
    target_key: str
    target_description: str
    compiler: str
    flags: tuple[str, ...]
    dispatch: Dispatch | None
    target: Target

    @staticmethod
    def of(task: Task, target: Target) -> StoredTask:
        """Return what is kept of a task that is tuned for a target."""
        return StoredTask(
            task.key,
            task.name,
            describe(task.dispatch) if task.dispatch else task.not_tunable,
            target.key,
            target.description,
            target.compiler,
            task.flags,
            task.dispatch,
            target,
        )


@dataclass(frozen=True)
class StoredProgram:
    """What runs decided about a whole program, and what they measured of its variants.

    Attributes:
        context_key: What its speed depends on beside the program (:func:`measuring_context`).
        task_keys: Keys of the tasks that the program has without any decision, sorted.
        decisions: The decisions by name, as in the program's library.
        ratio: How many times as fast as the untuned program the program is with its scripts.
        features: Where the time of the untuned program goes, as numbers by name; empty where that is not known.
        variants: How many times as fast as the untuned program each of its variants is without scripts, by name; 0 for
            one that does not compile, or fails when it runs.
        algorithms: How many times as fast as what it replaces each other algorithm is, both with scripts, by name.
    """

    context_key: str
    task_keys: tuple[str, ...]
    decisions: Mapping[str, Value]
    ratio: float
    features: Mapping[str, float] = field(default_factory=dict)
    variants: Mapping[str, float] = field(default_factory=dict)
    algorithms: Mapping[str, float] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The same for equal programs in the same context."""
        return hashlib.sha256("\0".join((self.context_key, *self.task_keys)).encode()).hexdigest()[:32]

    def beside(self, known: StoredProgram | None) -> StoredProgram:
        """Return what is known after this run, given what was known before.

        The faster decisions are kept, those of this run where they are the same: decisions that were measured in a
        lucky moment do not stay for ever. Variants and algorithms that this run did not measure stay as they were.
        """
        if known is None:
            return self
        faster = known if known.decisions != self.decisions and known.ratio >= self.ratio else self
        return replace(
            self,
            decisions=faster.decisions,
            ratio=faster.ratio,
            features=self.features or known.features,
            variants={**known.variants, **self.variants},
            algorithms={**known.algorithms, **self.algorithms},
        )


def describe(dispatch: Dispatch) -> str:
    """Return the ops of a dispatch with their loop extents on one line."""
    return "; ".join(f"{op.name} {'x'.join(map(str, op.extents))}" for op in dispatch.ops)


@dataclass(frozen=True)
class Record:
    """One candidate that was compiled, run and checked, or failed on the way.

    Task, context and candidate key together say what was measured. They are unique in a store, except for candidates
    that were tried again because the machine may have caused their failure.

    Attributes:
        task_key: The task it implements.
        context_key: What its timing depends on beside the task (:func:`measuring_context`).
        candidate_key: :func:`script_key` of a script; ``Trace.key`` of an illegal trace, which has no script; "untuned"
            for untuned code.
        origin: Who made its code.
        trace: Its decisions; None for untuned code.
        script: Its transform script as text, empty when it has none.
        outcome: Its timing or its failure, and the verdict on its numbers.
        round: The round of its run that measured it, from 0.
        seed: The seed of its run, in [-2**63, 2**63).
        attempt: How often the candidate had been tried before; above 0 only after failures that may not last.
        tool: Version of mlir-sched that measured it; in a search with a digest of the sources that its scripts come
            from, as in ``0.1.0+3f2a9c1e5d6b7a80``.
        created: When it was measured, ISO 8601 in UTC.
    """

    task_key: str
    context_key: str
    candidate_key: str
    origin: Origin
    trace: Trace | None
    script: str
    outcome: Outcome
    round: int
    seed: int
    attempt: int = 0
    tool: str = __version__
    created: str = field(default_factory=utc_now)

    @property
    def key(self) -> tuple[str, str, str, int]:
        """The keys and the attempt, which together are unique in a store."""
        return self.task_key, self.context_key, self.candidate_key, self.attempt

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data; floats keep every bit."""
        plain = [each.name for each in fields(self) if each.name not in ("origin", "trace", "outcome")]
        return {name: getattr(self, name) for name in plain} | {
            "origin": self.origin.value,
            "trace": self.trace.to_json() if self.trace else None,
            "outcome": _outcome_to_json(self.outcome),
        }


def _outcome_to_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "timing": outcome.timing.to_json() if outcome.timing else None,
        "failure": asdict(outcome.failure) if outcome.failure else None,
        "verdict": outcome.verdict.value,
        "binary_hash": outcome.binary_hash,
    }
