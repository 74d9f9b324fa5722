"""The sets of measured candidates: which programs have how many candidates, chosen and timed how."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.corpus.families import FAMILIES, PROGRAMS
from benchmarks.folders import DATA
from mlir_sched.corpus.files import SHIPPED
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target

COLLECTED = DATA / "corpus"
"""Folder of the sets that do not come with mlir-sched, with a folder per machine."""
LONGEST = tuple(list(programs)[-1] for programs in FAMILIES.values())
"""The longest program of every family."""


@dataclass(frozen=True)
class CorpusSet:
    """What is collected under one name.

    Attributes:
        what: What it is, for the help.
        random: Candidates of a program that are drawn at random, the sketches in turn.
        model: Candidates that the default search chooses behind these.
        best_of: Name of the set whose fastest candidates are measured again; empty for none.
        best: How many of these a program has.
        programs: Names of the programs.
        all_cores: Whether programs run on all cores, and not on one.
        final: Whether candidates are timed as in the sessions at the end of a run, and not as in a search.
        folder: Where the files of all machines are.
    """

    what: str
    random: int = 0
    model: int = 0
    best_of: str = ""
    best: int = 0
    programs: tuple[str, ...] = tuple(PROGRAMS)
    all_cores: bool = False
    final: bool = False
    folder: Path = SHIPPED

    @property
    def size(self) -> int:
        """Candidates of a program."""
        return self.random + self.model + self.best

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
}
"""The sets by name."""
