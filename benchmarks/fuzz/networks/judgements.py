"""What becomes of a network under every plan, and what many such judgements have in common."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from mlir_sched.compiler.reasons import reason

_SHAPES = re.compile(r"\([^)]*\)")
_PARTICULARS = re.compile(r"'?%\w+'?|<[^>]*>|\d[\dx]*")
_RAISED = re.compile(r"^[\w.]+(?:Error|Exception)\b.*", re.MULTILINE)
_PLACE = re.compile(r"^.*?:\d+:\d+: ", re.MULTILINE)


class Fate(StrEnum):
    """What becomes of a network under a plan."""

    RIGHT = "right"
    MISCOMPILED = "IREE's own code is wrong"
    REJECTED = "not compiled"
    WRONG = "WRONG NUMBERS"
    INTERNAL = "INTERNAL ERROR"

    @property
    def is_fault(self) -> bool:
        """Whether this must not happen."""
        return self in (Fate.WRONG, Fate.INTERNAL)


@dataclass(frozen=True)
class PlanJudgement:
    """What became of a network under a plan.

    Attributes:
        plan: Name of the plan.
        rewrites: Names of its rewrites; none for IREE's own code.
        fate: What became of it.
        detail: The class of the failure and the compiler's first error, or the difference of the numbers.
    """

    plan: str
    rewrites: tuple[str, ...]
    fate: Fate
    detail: str = ""

    @property
    def rewrite(self) -> str:
        """The rewrites without the shapes of sites."""
        return "+".join(_SHAPES.sub("", name) for name in self.rewrites) or self.plan

    @property
    def kind(self) -> tuple[str, str, str]:
        """Equal for what is likely the same fault: fate, rewrites, and the error without numbers and names."""
        cause = _PARTICULARS.sub("_", self.detail) if self.fate in (Fate.REJECTED, Fate.INTERNAL) else ""
        return self.fate.value, self.rewrite, cause


@dataclass(frozen=True)
class NetworkJudgement:
    """What became of a network under every plan.

    Attributes:
        seed: Its seed.
        size: Values that it computes.
        plans: One judgement per plan, IREE's default code first.
    """

    seed: int
    size: int
    plans: tuple[PlanJudgement, ...]

    @property
    def findings(self) -> list[PlanJudgement]:
        """What is not right, without plans that have all rewrites of another one with the same fate, and more."""
        found = [each for each in self.plans if each.fate is not Fate.RIGHT]
        return [
            each
            for each in found
            if not any(
                other.fate is each.fate and other.rewrites and {*other.rewrites} < {*each.rewrites} for other in found
            )
        ]


def cause(text: str) -> str:
    """Return what diagnostics, or a traceback, name as the cause, without its place in the file."""
    if errors := _RAISED.findall(text):
        text = errors[-1]
    return reason(_PLACE.sub("", text))


def smallest(found: Iterable[NetworkJudgement]) -> list[tuple[int, PlanJudgement]]:
    """Return a finding of every kind, in the smallest network that has it, with the network's seed."""
    kinds: dict[tuple[str, ...], tuple[int, PlanJudgement]] = {}
    for each in sorted(found, key=lambda each: each.size):
        for finding in each.findings:
            kinds.setdefault(finding.kind, (each.seed, finding))
    return [*kinds.values()]


def summary(found: Sequence[NetworkJudgement]) -> list[str]:
    """Return a table of what became of networks, with a row per plan, and every kind of finding with its seeds."""
    names = list(dict.fromkeys(plan.rewrite for each in found for plan in each.plans))
    width = max(map(len, names), default=0)
    table = [f"{'':{width}} " + " ".join(f"{fate.value:>{_width(fate)}}" for fate in Fate)]
    for name in names:
        fates = [plan.fate for each in found for plan in each.plans if plan.rewrite == name]
        table.append(f"{name:{width}} " + " ".join(f"{fates.count(fate):{_width(fate)}}" for fate in Fate))
    lines = [f"{len(found)} networks, {sum(len(each.plans) for each in found)} programs", *table]
    return [*lines, *(f"{text}: {len(seeds)} networks, e.g. {seeds[:5]}" for text, seeds in _kinds(found).items())]


def _width(fate: Fate) -> int:
    return max(len(fate.value), 7)


def _kinds(found: Iterable[NetworkJudgement]) -> dict[str, list[int]]:
    """Return the kinds of findings, those of most networks first, with the seeds of the networks, small ones first."""
    kinds: dict[str, list[int]] = {}
    for each in sorted(found, key=lambda each: each.size):
        for name in dict.fromkeys(": ".join(filter(None, finding.kind)) for finding in each.findings):
            kinds.setdefault(name, []).append(each.seed)
    return dict(sorted(kinds.items(), key=lambda kind: -len(kind[1])))
