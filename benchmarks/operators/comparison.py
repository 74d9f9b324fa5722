"""The comparison of one operator: for each seed, build the programs, start the peers, check results, time in turns."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures import roofline
from benchmarks.figures.rows import IREE, PLAIN, SYNC, Row, Session, row_of
from benchmarks.figures.sampling import TimedWay, interleave
from benchmarks.kept import Kept
from benchmarks.operators.programs import TUNED, Built, build, build_empty
from benchmarks.operators.table import Operator
from benchmarks.peers.client import PeerError, PeerProcess, PeerSpec
from benchmarks.peers.make_peer import missing
from benchmarks.peers.tuning import Tuning
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.checks.check import Check, InputKind
from mlir_sched.runner.checks.inputs import make_inputs
from mlir_sched.runner.checks.numeric_checks import checks_for_model
from mlir_sched.runner.client import ENVIRONMENT
from mlir_sched.runner.worker.comparison import compare
from mlir_sched.runner.worker.references import telling, why_unverifiable
from mlir_sched.targets.target import LOCAL, LOCAL_SYNC, Target
from mlir_sched.tensors.element_types import Array, dtype_of
from mlir_sched.tuning.options import TuneOptions

_ALLOCATION = {name: value for name, value in ENVIRONMENT.items() if name.startswith("MALLOC_")}
"""Allocator settings of IREE's processes: the same as those with which mlir-sched times programs."""

IREE_PEERS = {
    IREE: PeerSpec(IREE, Path(sys.executable), "benchmarks.peers.peer_iree", environment=_ALLOCATION),
    PLAIN: PeerSpec(PLAIN, Path(sys.executable), "benchmarks.peers.peer_iree", environment=_ALLOCATION),
    SYNC: PeerSpec(SYNC, Path(sys.executable), "benchmarks.peers.peer_iree", environment=_ALLOCATION),
}
SESSION = Kept("session", Session, 2)


@dataclass(frozen=True)
class Setting:
    """How operators are compared.

    Attributes:
        target: The target that IREE compiles for; its ``cores`` are the threads.
        cores: The cores on which all programs are timed.
        peers: Frameworks besides IREE.
        trials: Trials of mlir-sched per program, and of TVM per operator; 0 tunes nothing.
        seeds: Seeds of the searches and of the order of samples; each makes one session.
        rounds: Samples per way and session.
        sample_s: Seconds of a sample.
        patience_s: Seconds of sampling after which no further round starts.
        prepare_timeout_s: Time limit of a peer's tuning, in seconds.
        keep: Folder that keeps the results of tuning and the samples, so that a later run can resume; None discards
            them.
        sample_again: Whether a session is sampled again although its samples were kept.
        plain_caller: Whether IREE's programs are also called by a thread that does not yield to IREE's workers.
    """

    target: Target
    cores: tuple[int, ...]
    peers: tuple[PeerSpec, ...]
    trials: int
    seeds: tuple[int, ...]
    rounds: int
    sample_s: float
    patience_s: float
    prepare_timeout_s: float
    keep: Path | None = None
    sample_again: bool = False
    plain_caller: bool = False

    def of_session(self) -> dict[str, Any]:
        """Return the settings that have to be the same for kept samples to be used again."""
        names = ("trials", "rounds", "sample_s", "plain_caller")
        there = [spec.name for spec in self.peers if missing(spec) is None]
        machine = {"processor": self.target.processor, "compiler": self.target.compiler, "cores": list(self.cores)}
        return {name: getattr(self, name) for name in names} | machine | {"peers": there}


class Comparison:
    """The comparison of one operator with one seed.

    Attributes:
        ways: The ways and empty calls that can be sampled, once the processes are started.
    """

    def __init__(self, operator: Operator, setting: Setting, folder: Path, seed: int) -> None:
        self._operator, self._setting, self._folder, self._seed = operator, setting, folder, seed
        self.ways: list[TimedWay] = []
        self._processes: dict[str, PeerProcess] = {}
        self._tuning: dict[str, Tuning] = {}
        self._notes: list[str] = []

    def run(self) -> Session:
        """Build, check and time all ways, and return the session.

        Raises:
            UserError: IREE cannot compile one of the operator's files.
            PeerError: IREE itself fails.
        """
        setting = self._setting
        with ExitStack() as stack:
            built = self.start(stack)
            samples = interleave(
                self.ways,
                self.sample,
                rounds=setting.rounds,
                patience_s=setting.patience_s,
                rng=np.random.default_rng(self._seed),
            )
        notes = tuple(dict.fromkeys(self._notes))
        ceilings = roofline.measure(setting.cores)
        return Session(self._seed, samples, self._tuning, notes, built.flops, built.moved_bytes, ceilings)

    def start(self, stack: ExitStack) -> Built:
        """Build all programs, check them, and start processes that end with the stack; exceptions as of :meth:`run`."""
        setting = self._setting
        built = build(self._operator, setting.target, self._folder, trials=setting.trials, seed=self._seed)
        self._notes += built.notes
        if built.tuning is not None:
            self._tuning[TUNED] = built.tuning
        self._start(built, stack)
        return built

    def _start(self, built: Built, stack: ExitStack) -> None:
        """Start and prepare every available framework; a framework other than IREE that fails becomes a note."""
        inputs = self._save(make_inputs(built.entry.inputs, check_of(built)))
        empty = build_empty(self._setting.target, self._folder).to_json()

        def loaded(device: str) -> dict[str, Any]:
            return {"programs": [p.to_json() for p in built.programs if device in p.devices], "empty": empty}

        own = LOCAL.device(len(self._setting.cores))
        reference = self._prepare(IREE_PEERS[IREE], stack, inputs, built, None, loaded(own))
        assert reference is not None
        found = [[reference]]
        told = telling(built.entry.outputs[:1], [check_of(built)], found)
        if reason := why_unverifiable(found, told.constant):
            self._notes.append(f"the numbers cannot be checked: {reason}")
        if self._setting.plain_caller:
            self._prepare(IREE_PEERS[PLAIN], stack, inputs, built, reference, {**loaded(own), "yields": False})
        if own != LOCAL_SYNC:
            self._prepare(IREE_PEERS[SYNC], stack, inputs, built, reference, loaded(LOCAL_SYNC))
        for spec in self._setting.peers:
            if not self._operator.known:
                self._notes.append(f"{spec.name}: no equivalent is known")
            elif note := missing(spec):
                self._notes.append(f"{spec.name}: {note}")
            else:
                try:
                    self._prepare(spec, stack, inputs, built, reference, {})
                except PeerError as error:
                    self._notes.append(f"{spec.name}: {error}")

    def _prepare(
        self,
        spec: PeerSpec,
        stack: ExitStack,
        inputs: list[str],
        built: Built,
        reference: Array | None,
        extra: Mapping[str, object],
    ) -> Array | None:
        """Start one framework, and keep the ways whose results are right.

        Returns:
            ``reference``, or without one the result of the framework's first way.

        Raises:
            PeerError: The framework cannot run the operator.
        """
        work = self._folder / spec.name
        work.mkdir(exist_ok=True)
        cores = self._setting.cores[-1:] if spec.name == SYNC else self._setting.cores
        process = stack.enter_context(PeerProcess(spec, cores))
        output = built.entry.outputs[0]
        request = {
            "ask": "prepare",
            "operator": self._operator.name,
            "inputs": inputs,
            "output": str(work / "result"),
            "shape": output.shape,
            "work": str(work),
            "trials": self._setting.trials,
            "round_size": TuneOptions().round_size,
            "seed": self._seed,
        }
        reply = process.ask({**request, **extra}, self._setting.prepare_timeout_s)
        for index, way in enumerate(reply["ways"]):
            result = load_result(Path(way["outputs"][0]), output)
            reference = result if reference is None else reference
            wrong = difference(reference, result, built)
            if wrong is None:
                detail = ", ".join(filter(None, (way["detail"], LOCAL_SYNC if spec.name == SYNC else "")))
                self.ways.append(TimedWay(spec.name, index, way["label"], detail))
            else:
                self._notes.append(f"{way['label']} {way['detail']}: wrong numbers, not timed: {wrong}")
        for index, label in enumerate(reply["empty_calls"], len(reply["ways"])):
            self.ways.append(TimedWay(spec.name, index, label, empty=True))
        self._tuning |= {label: Tuning(**tuning) for label, tuning in reply["tuning"].items()}
        self._notes += reply["notes"]
        self._processes[spec.name] = process
        return reference

    def sample(self, timed: TimedWay) -> tuple[float, bool]:
        """Take one sample of a way: seconds per call, and whether nothing disturbed it."""
        return self._processes[timed.peer].sample(timed.way, self._setting.sample_s)

    def _save(self, arrays: Sequence[Array]) -> list[str]:
        paths = [str(self._folder / f"input-{index}.npy") for index in range(len(arrays))]
        for path, array in zip(paths, arrays, strict=True):
            np.save(path, array)
        return paths


def compare_operator(operator: Operator, setting: Setting) -> Row:
    """Return the results of one operator with all seeds; see :class:`Comparison`."""
    sessions = [_session(operator, setting, seed) for seed in setting.seeds]
    return row_of(operator.name, sessions)


def _session(operator: Operator, setting: Setting, seed: int) -> Session:
    """Return the session of one seed, run now or kept by an earlier run."""
    if setting.keep is None:
        with tempfile.TemporaryDirectory(prefix="mlir-sched-", ignore_cleanup_errors=True) as scratch:
            return Comparison(operator, setting, Path(scratch), seed).run()
    name = f"{operator.name.lower()}-{setting.trials}-trials-{setting.target.cores}-threads-seed-{seed}"
    folder = (setting.keep / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    file, asked = folder / "session.json", setting.of_session()
    if not setting.sample_again and (known := SESSION.read(file, asked)) is not None:
        return known
    session = Comparison(operator, setting, folder, seed).run()
    SESSION.write(file, session, asked)
    return session


def load_result(path: Path, spec: TensorSpec) -> Array:
    """Return the result that a peer saved; NumPy's files hold bf16 as two bytes without a type."""
    result: Array = np.load(path)
    return result.view(dtype_of(spec)) if result.dtype.kind == "V" else result


def check_of(built: Built) -> Check:
    """Return the check of a whole program on random numbers."""
    checks = checks_for_model(built.entry.outputs, integer_ranges=built.entry.integer_ranges or None)
    return next(check for check in checks if check.kind == InputKind.RANDOM)


def difference(reference: Array, result: Array, built: Built) -> str | None:
    """Say how a result of a program differs from the reference, or None when it is right."""
    output = built.entry.outputs[0]
    if result.shape != reference.shape:
        return f"shape {result.shape} instead of {reference.shape}"
    return compare(reference, result, output, check_of(built).tolerance_for(output, reference))
