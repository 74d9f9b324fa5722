"""One operator from start to end: build, start the peers, check the numbers, time in turns."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.operators.client import PeerError, PeerProcess, PeerSpec
from benchmarks.operators.make_peer import missing
from benchmarks.operators.peer import EMPTY
from benchmarks.operators.programs import TUNED, Built, build, build_empty
from benchmarks.operators.roofline import Roofline
from benchmarks.operators.rows import Row, columns_of
from benchmarks.operators.sampling import Contender, interleave
from benchmarks.operators.table import Operator
from benchmarks.operators.tuning import Tuning
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.rules import rule_for_model
from mlir_sched.runner.verify import Array, compare, dtype_of, make_inputs
from mlir_sched.target import Target

IREE = PeerSpec("iree", Path(sys.executable), "benchmarks.operators.peer_iree")
SAMPLE_TIMEOUT_S = 300.0


@dataclass(frozen=True)
class Setting:
    """How operators are compared.

    Attributes:
        target: What IREE compiles for; its ``cores`` are the threads.
        cores: Where everything runs.
        roofline: Their ceilings.
        peers: Frameworks besides IREE.
        trials: For mlir-sched per program and for TVM per operator; 0 tunes nothing.
        seed: Of the searches and of the order of samples.
        rounds: Samples per contender.
        sample_s: Seconds of a sample.
        patience_s: Seconds of sampling after which no further round starts.
        prepare_timeout_s: Patience for a peer's tuning.
        keep: Where what tuning makes stays, to be measured again without tuning; None throws it away.
    """

    target: Target
    cores: tuple[int, ...]
    roofline: Roofline
    peers: tuple[PeerSpec, ...]
    trials: int
    seed: int
    rounds: int
    sample_s: float
    patience_s: float
    prepare_timeout_s: float
    keep: Path | None = None


class Comparison:
    """The comparison of one operator; its processes end with :meth:`run`."""

    def __init__(self, operator: Operator, setting: Setting, folder: Path) -> None:
        self._operator, self._setting, self._folder = operator, setting, folder
        self._processes: dict[str, PeerProcess] = {}
        self._contenders: list[Contender] = []
        self._tuning: dict[str, Tuning] = {}
        self._notes: list[str] = []

    def run(self) -> Row:
        """Return what was found.

        Raises:
            UserError: A file is no program that IREE compiles.
            PeerError: IREE itself fails.
        """
        setting = self._setting
        built = build(self._operator, setting.target, self._folder, trials=setting.trials, seed=setting.seed)
        self._notes += built.notes
        if built.tuning is not None:
            self._tuning[TUNED] = built.tuning
        with ExitStack() as stack:
            self._start(built, stack)
            return self._time(built)

    def _start(self, built: Built, stack: ExitStack) -> None:
        """Start every framework that is there and prepare it; those that fail become notes."""
        check = rule_for_model(built.entry.outputs).checks[0]
        inputs = self._save(make_inputs(built.entry.inputs, check))
        empty = build_empty(self._setting.target, self._folder).to_json()
        programs = [program.to_json() for program in built.programs]
        reference = self._prepare(IREE, stack, inputs, built, None, {"programs": programs, "empty": empty})
        assert reference is not None
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
        extra: dict[str, object],
    ) -> Array | None:
        """Start one framework, and keep the ways whose numbers are right; return the first way's result.

        Raises:
            PeerError: It cannot run the operator.
        """
        work = self._folder / spec.name
        work.mkdir(exist_ok=True)
        process = stack.enter_context(PeerProcess(spec, self._setting.cores))
        output = built.entry.outputs[0]
        request = {
            "ask": "prepare",
            "operator": self._operator.name,
            "inputs": inputs,
            "output": str(work / "result"),
            "shape": output.shape,
            "work": str(work),
            "trials": self._setting.trials,
            "seed": self._setting.seed,
        }
        reply = process.ask(request | extra, self._setting.prepare_timeout_s)
        tolerance = rule_for_model(built.entry.outputs).checks[0].tolerance
        for index, way in enumerate(reply["ways"]):
            result = load_result(Path(way["output"]), output)
            reference = result if reference is None else reference
            wrong = _difference(reference, result, built, tolerance)
            if wrong is None:
                self._contenders.append(Contender(spec.name, index, way["label"], way["detail"]))
            else:
                self._notes.append(f"{way['label']} {way['detail']}: wrong numbers, not timed: {wrong}")
        if reply["trials"]:
            self._tuning[reply["ways"][0]["label"]] = Tuning(reply["trials"], reply["seconds"])
        self._processes[spec.name] = process
        return reference

    def _time(self, built: Built) -> Row:
        empties = [Contender(peer, EMPTY, "empty call") for peer in self._processes]
        setting = self._setting
        rng = np.random.default_rng(setting.seed)
        samples = interleave(
            [*self._contenders, *empties], self._sample, rounds=setting.rounds, patience_s=setting.patience_s, rng=rng
        )
        overhead = {s.contender.peer: s for s in samples if s.contender.way == EMPTY}
        columns, kernel_time = columns_of(tuple(s for s in samples if s.contender.way != EMPTY), overhead)
        floor_s, bound = setting.roofline.seconds(built.flops, built.moved_bytes)
        return Row(
            self._operator.name,
            columns,
            kernel_time,
            {peer: s.interval.median for peer, s in overhead.items()},
            floor_s,
            bound,
            built.flops,
            built.moved_bytes,
            self._tuning,
            tuple(self._notes),
            samples,
        )

    def _sample(self, contender: Contender) -> tuple[float, bool]:
        request = {"ask": "sample", "way": contender.way, "seconds": self._setting.sample_s}
        reply = self._processes[contender.peer].ask(request, SAMPLE_TIMEOUT_S)
        return reply["call_s"], reply["alone"]

    def _save(self, arrays: Sequence[Array]) -> list[str]:
        paths = [str(self._folder / f"input-{index}.npy") for index in range(len(arrays))]
        for path, array in zip(paths, arrays, strict=True):
            np.save(path, array)
        return paths


def compare_operator(operator: Operator, setting: Setting) -> Row:
    """Return what was found for one operator; see :class:`Comparison`."""
    if setting.keep is not None:
        settings = f"{setting.trials}-trials-{setting.target.cores}-threads-seed-{setting.seed}"
        kept = setting.keep / f"{operator.name.lower()}-{settings}"
        kept.mkdir(parents=True, exist_ok=True)
        return Comparison(operator, setting, kept.resolve()).run()
    with tempfile.TemporaryDirectory(prefix="mlir-sched-", ignore_cleanup_errors=True) as folder:
        return Comparison(operator, setting, Path(folder)).run()


def load_result(path: Path, spec: TensorSpec) -> Array:
    """Return what a peer saved as the result; NumPy's files know bf16 only as two bytes."""
    result: Array = np.load(path)
    return result.view(dtype_of(spec)) if result.dtype.kind == "V" else result


def _difference(reference: Array, result: Array, built: Built, tolerance: float) -> str | None:
    if result.shape != reference.shape:
        return f"shape {result.shape} instead of {reference.shape}"
    return compare(reference, result, built.entry.outputs[0], tolerance)
