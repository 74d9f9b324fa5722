"""The sets of measured candidates: which programs have how many candidates, chosen and timed how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from benchmarks.corpus.families import FAMILIES, PROGRAMS
from benchmarks.folders import DATA
from mlir_sched.corpus.files import SHIPPED
from mlir_sched.runner import RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.tuning.options import TuneOptions

COLLECTED = DATA / "corpus"
"""Folder of the sets that do not come with mlir-sched, with a folder per machine."""
LONGEST = tuple(list(programs)[-1] for programs in FAMILIES.values())
"""The longest program of every family."""
NETWORKS = ("inverted_residuals", "transformer_layer")
"""Programs of ``benchmarks/models`` with several dispatches, whose courses are collected."""


@dataclass(frozen=True)
class Part:
    """A part of a design space whose candidates are all measured: those of a sketch with some decisions pinned.

    It is worth a search where few of its candidates are as good as the best one: what hardly matters is pinned, so that
    it makes no equals, and what matters is left open.
    """

    sketch: str
    pinned: Mapping[str, Value] = field(default_factory=dict)


PARTS: Mapping[str, Part] = {
    "scores_16x64x64x64": Part(
        "contraction.registers",
        {"workgroup_0": (8,), "workgroup_1": (64,), "workgroup_2": (16,), "reduction_step": (16,)},
    ),
    "scores_12x128x128x64": Part(
        "contraction.registers",
        {"workgroup_0": (3,), "workgroup_1": (128,), "workgroup_2": (64,), "columns": (16, 16)},
    ),
    "softmax_128x192": Part("reduction", {"workgroup_0": (64,)}),
    "softmax_12x49x49": Part("reduction", {"workgroup_0": (4,)}),
}
"""The parts that are measured whole, by program."""


class Select(StrEnum):
    """What is measured behind the random draws of a pool."""

    FASTEST = "fastest"
    """What the default search chooses."""
    UNCERTAINTY = "uncertainty"
    """What a model of all pools and of the candidates so far is least sure of."""


@dataclass(frozen=True)
class CorpusSet:
    """What is collected under one name.

    Attributes:
        what: What it is, for the help.
        random: Candidates of a program that are drawn at random, the sketches in turn.
        model: Candidates that are chosen behind these, by the default search or as :class:`Select` says.
        best_of: Name of the set whose fastest candidates are measured again; empty for none.
        best: How many of these a program has.
        parts: The parts of design spaces that are measured whole, by program; none for a set that is a sample.
        trials: Candidates of a network: its dispatches have equal shares, each in a search of its own, so that they can
            be replayed in any order. 0 for a set of :data:`PROGRAMS`, of which the largest dispatch counts.
        programs: Names of the programs, or of the networks.
        round_size: Candidates between two looks at the clock; what is measured is stored when all were timed.
        all_cores: Whether programs run on all cores, and not on one.
        final: Whether candidates are timed as in the sessions at the end of a run, and not as in a search.
        folder: Where the files of all machines are.
    """

    what: str
    random: int = 0
    model: int = 0
    best_of: str = ""
    best: int = 0
    parts: Mapping[str, Part] = field(default_factory=dict)
    trials: int = 0
    programs: tuple[str, ...] = tuple(PROGRAMS)
    round_size: int = 16
    all_cores: bool = False
    final: bool = False
    folder: Path = SHIPPED

    @property
    def size(self) -> str:
        """How many candidates of how many programs there are, for the help."""
        each = self.random + self.model + self.best + self.trials
        return f"{each or 'all'} candidates of {len(self.programs)} programs"

    def options(self, target: Target) -> RunnerOptions:
        """Return how candidates are timed."""
        make = RunnerOptions.final if self.final else RunnerOptions.for_device
        return make(target.driver, threads=target.cores)


SETS: Mapping[str, CorpusSet] = {
    "pools": CorpusSet("random candidates of all programs, then as many that a search chooses", random=48, model=48),
    "best": CorpusSet(
        "the fastest of each pool again, timed as at the end of a run",
        best_of="pools",
        best=8,
        final=True,
        folder=COLLECTED,
    ),
    "machine": CorpusSet("few random candidates of all programs, for a machine without pools", random=24),
    "all_cores": CorpusSet(
        "a pool of the longest program of every family on all cores",
        random=48,
        model=48,
        programs=LONGEST,
        all_cores=True,
    ),
    "complete": CorpusSet(
        "parts of design spaces, measured point by point", parts=PARTS, programs=tuple(PARTS), folder=COLLECTED
    ),
    "courses": CorpusSet(
        "networks, every dispatch searched alone, with the seconds that this took",
        trials=500,
        programs=NETWORKS,
        round_size=TuneOptions.round_size,
        folder=COLLECTED,
    ),
}
"""The sets by name."""
