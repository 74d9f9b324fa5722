"""Recorded runs as data: every plan of a network, and the course of the search of each of its tasks.

A file is JSON, compressed by gzip, with the fields of :class:`RecordedRun`.
"""

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import cattrs
from cattrs.preconf.json import make_converter

from benchmarks.figures.result_table import Machine
from benchmarks.folders import DATA
from mlir_sched.payload import Dispatch, TensorSpec

RUNS = DATA / "allocation"
"""Folder of the recorded runs, with a folder per machine."""
FORMAT = 1
"""Version of the files."""


@dataclass(frozen=True)
class RecordedCandidate:
    """One candidate of a task, in the order of the search.

    Attributes:
        ratio: Speed-up over the untuned code; None where the candidate failed.
        seconds: Seconds that compiling, checking and timing took; a round's seconds divided by its candidates.
    """

    ratio: float | None
    seconds: float


@dataclass(frozen=True)
class RecordedTask:
    """One task of any of the plans.

    Attributes:
        key: Its key.
        dispatch: Its ops; None where it cannot be tuned.
        not_tunable: Why not; empty where it can.
        inputs, outputs, constants: As of ``Task``.
        ops: Names of all ops of its program, sorted.
        tunable: Whether there are scripts for it.
        untuned_s: Seconds per call of the untuned code; None where that was not measured.
        untuned_cost_s: Seconds that measuring the untuned code took.
        candidates: The course of its search.
        exhausted: Whether the strategy had nothing left behind the last candidate.
        course_of: Key of the task, with the same code under other flags, whose candidates stand for its own; empty for
            a task with a course of its own. Their times are the same ones, relative to another untuned code.
    """

    key: str
    dispatch: Dispatch | None
    not_tunable: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    constants: tuple[int, ...]
    ops: tuple[str, ...]
    tunable: bool = False
    untuned_s: float | None = None
    untuned_cost_s: float = 0.0
    candidates: tuple[RecordedCandidate, ...] = ()
    exhausted: bool = False
    course_of: str = ""


@dataclass(frozen=True)
class Called:
    """A task as a program calls it.

    Attributes:
        key: Key of the task.
        name: Symbol of the dispatch in the program.
        weight: Calls per run of the program.
    """

    key: str
    name: str
    weight: int


@dataclass(frozen=True)
class RecordedAlgorithm:
    """Another algorithm for a site of a plan (``OtherAlgorithm``).

    Attributes:
        site: Name of the site.
        gone: By task key, how many calls fewer the program makes.
        made: The tasks that it calls more often, each with the number of further calls.
    """

    site: str
    gone: Mapping[str, int]
    made: tuple[Called, ...]


@dataclass(frozen=True)
class RecordedPlan:
    """One plan of a network, without other algorithms.

    Attributes:
        name: Its name.
        build_s: Seconds that compiling and taking apart took.
        why_not: Why the plan does not compile or cannot be timed; empty where it can.
        code: Digest of its code.
        tasks: Its tasks, in the order of the program.
        call_s: Seconds per call without scripts; None where it was not timed.
        ratio: Speed-up over the default without scripts.
        look_s: Seconds that timing it beside the default took.
        profile_s: Seconds that profiling it took.
        profile: Seconds per run by the dispatch's symbol; empty where there is none.
        capture_s: Seconds that recording the values of its dispatches took.
        algorithms_s: Seconds that finding the other algorithms took.
        algorithms: The other algorithms of its sites.
    """

    name: str
    build_s: float
    why_not: str = ""
    code: str = ""
    tasks: tuple[Called, ...] = ()
    call_s: float | None = None
    ratio: float = 1.0
    look_s: float = 0.0
    profile_s: float = 0.0
    profile: Mapping[str, float] | None = None
    capture_s: float = 0.0
    algorithms_s: float = 0.0
    algorithms: tuple[RecordedAlgorithm, ...] = ()


@dataclass(frozen=True)
class EndCosts:
    """What the end of a run cost.

    Attributes:
        plan: Name of the plan that was emitted.
        choice_s: Median seconds of the choice between the finalists of a task.
        report_s: Median seconds of the report on a task's script.
        emission_s: Seconds that putting the program together, proving and measuring it took.
    """

    plan: str
    choice_s: float
    report_s: float
    emission_s: float


@dataclass(frozen=True)
class RecordedRun:
    """All that a rule about time can ask of a network on a machine.

    Attributes:
        network: Name of the network.
        family: What kind of network it is.
        machine: The machine.
        date: Day of the recording, ISO.
        versions: Versions of IREE and of mlir-sched.
        threads: Threads that programs run on.
        begin_s: Seconds of the beginning that belong to no plan: checks of what is needed, a look at the functions and
            at the rewrites.
        plans: All plans, the default first.
        tasks: All tasks of the plans and of their other algorithms.
        sites: Name of the kind and shape of every site, by its name.
        round_s: Median seconds per round between pieces of work: choosing candidates, learning, storing.
        end: What the end of a run cost.
        most_candidates: Candidates after which a course was cut, unless it was exhausted before.
    """

    network: str
    family: str
    machine: Machine
    date: str
    versions: Mapping[str, str]
    threads: int
    begin_s: float
    plans: tuple[RecordedPlan, ...]
    tasks: tuple[RecordedTask, ...]
    sites: Mapping[str, tuple[str, str]]
    round_s: float
    end: EndCosts
    most_candidates: int

    def plan(self, name: str) -> RecordedPlan:
        """Return the plan with a name; one without code where none was recorded."""
        return next((plan for plan in self.plans if plan.name == name), RecordedPlan(name, 0.0, "not recorded"))

    def with_course(self, task: RecordedTask) -> RecordedTask:
        """Return a task with the candidates that another task's stand for."""
        if not task.course_of or task.untuned_s is None:
            return task
        other = next(each for each in self.tasks if each.key == task.course_of)
        if other.untuned_s is None:
            return task
        factor = task.untuned_s / other.untuned_s
        scaled = (replace(each, ratio=None if each.ratio is None else factor * each.ratio) for each in other.candidates)
        return replace(task, candidates=tuple(scaled), exhausted=other.exhausted)


@cache
def converter() -> cattrs.Converter:
    """Return what turns recorded runs into plain data and back."""
    made: cattrs.Converter = make_converter(omit_if_default=True)
    return made


def write_run(run: RecordedRun, path: Path) -> None:
    """Write a recorded run; equal runs give equal files."""
    data = {"format": FORMAT, **converter().unstructure(run)}
    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def read_run(path: Path) -> RecordedRun:
    """Read a recorded run.

    Raises:
        ValueError: The file has another format.
    """
    data = json.loads(gzip.decompress(path.read_bytes()))
    if data.pop("format", None) != FORMAT:
        raise ValueError(f"{path}: not a recorded run of format {FORMAT}")
    return converter().structure(data, RecordedRun)


def recorded_runs() -> dict[str, Path]:
    """Return the files of all recorded runs, by machine, network and threads."""
    return {
        f"{path.parent.name}/{path.name.removesuffix('.json.gz')}": path for path in sorted(RUNS.glob("*/*.json.gz"))
    }
