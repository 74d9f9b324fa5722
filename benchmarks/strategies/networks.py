"""Whole runs with two sets of options: exported networks are tuned with each, and the programs are timed in turns.

A network is a folder that ``networks.export`` wrote. Both sets are options of ``mlir-sched tune``, given as
``--a=OPTIONS`` and ``--b=OPTIONS``; B is the arm, and A is what it is compared with. A run that is done is not
repeated, and one that was stopped goes on. No run may add to what another one reads: a store that B begins with is
given to it read only.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from itertools import product
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Better, Columns, ResultColumn, ResultTable, Unit, figure
from benchmarks.figures.rows import IREE
from benchmarks.figures.sampling import Samples, TimedWay, interleave, ratio
from benchmarks.kept import Kept
from benchmarks.networks.comparison import PREPARE_TIMEOUT_S, UNTUNED, differences, parameters_of
from benchmarks.networks.modules import input_paths
from benchmarks.operators.comparison import IREE_PEERS
from benchmarks.operators.programs import Compiled
from benchmarks.peers.client import PeerProcess, run_module
from benchmarks.peers.tuning import Tuning, kept_tuning
from mlir_sched.compiler import compile_model
from mlir_sched.errors import UserError
from mlir_sched.runner.statistics import Interval
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tuned_folder.names import FLAGS

A, B = "A", "B"
OVER_TIME = 3.0
"""Multiple of its minutes that a run may take before it is given up, beside ten minutes."""


@dataclass(frozen=True)
class Setting:
    """How two sets of options are compared.

    Attributes:
        target: This machine, with the threads of programs.
        cores: The cores on which programs are timed.
        arm: Name of what B is, under which ``strategies live`` takes the result.
        options: The options of A and of B.
        minutes: Minutes of every run that does not say other ones itself.
        rounds, sample_s: Samples of a program, and seconds of each.
        keep: Folder of what is tuned, and of results.
    """

    target: Target
    cores: tuple[int, ...]
    arm: str
    options: Mapping[str, str]
    minutes: float
    rounds: int
    sample_s: float
    keep: Path

    def of_pair(self) -> dict[str, object]:
        """Return what has to be the same for a pair that is done to count again."""
        return {
            "options": dict(self.options),
            "minutes": self.minutes,
            "rounds": self.rounds,
            "sample_s": self.sample_s,
            "cores": list(self.cores),
            "compiler": self.target.compiler,
        }


@dataclass(frozen=True)
class NetworkPair:
    """One network, tuned with both sets of options with one seed.

    Attributes:
        arm: As of the setting.
        ratio: Time of B's program over that of A's.
        tuning: Trials and seconds of A and of B.
    """

    arm: str
    network: str
    seed: int
    ratio: Interval
    tuning: dict[str, Tuning]


KEPT = Kept("pair", NetworkPair, 1)


def pairs_of(folders: Sequence[Path], seeds: int, setting: Setting) -> Iterator[NetworkPair]:
    """Yield the pairs of every seed and network.

    Raises:
        UserError: A folder has no network, or IREE cannot compile it.
        PeerError: A run or a program fails.
        WrongResultError: A program computes other results than the untuned one.
    """
    if wrong := [folder for folder in folders if not (folder / "model.mlir").is_file() or not input_paths(folder)]:
        raise UserError(f"{wrong[0]} is no exported network: python -m benchmarks networks.export NAME {wrong[0]}")
    for seed, folder in product(range(seeds), folders):
        place = setting.keep / folder.resolve().name
        place.mkdir(parents=True, exist_ok=True)
        file = place / f"{setting.arm}-{seed}.json"
        if (known := KEPT.read(file, setting.of_pair())) is None:
            names = (A, B) if seed % 2 == 0 else (B, A)
            tuned = {name: _tuned(folder, place, setting.options[name], seed, setting) for name in names}
            samples = _sampled(folder, place, {name: path for name, (path, _) in tuned.items()}, seed, setting)
            tuning = {name: took for name, (_, took) in tuned.items()}
            known = NetworkPair(setting.arm, place.name, seed, ratio(samples[B], samples[A]), tuning)
            KEPT.write(file, known, setting.of_pair())
        yield known


def _tuned(folder: Path, place: Path, options: str, seed: int, setting: Setting) -> tuple[Path, Tuning]:
    """Return the tuned folder of a run, and what the run took."""
    threads = setting.target.cores
    asked = ["--minutes", f"{setting.minutes:g}", "--threads", str(threads), "--seed", str(seed), *shlex.split(options)]
    output = place / f"tuned-{sha256(shlex.join(asked).encode()).hexdigest()[:12]}"
    if (took := kept_tuning(output)) is None:
        weights = [word for file in parameters_of(folder) for word in ("--parameters", str(file))]
        command = "tune", str(folder / "model.mlir"), "-o", str(output), *weights, "--json", *asked
        limit_s = 600.0 + 60.0 * OVER_TIME * setting.minutes
        summary = json.loads(run_module("mlir_sched.cli", *command, timeout_s=limit_s))
        took = Tuning(summary["trials"], summary["run_seconds"])
        took.keep(output)
    return output, took


def _sampled(folder: Path, place: Path, tuned: Mapping[str, Path], seed: int, setting: Setting) -> dict[str, Samples]:
    """Return the samples of the tuned programs by name, taken in turns; the untuned program is their reference."""
    model, parameters = folder / "model.mlir", parameters_of(folder)
    entry = extract(model, setting.target, parameters=parameters).entries[0]
    flags = {UNTUNED: setting.target.flags, **{name: (f"@{path / FLAGS}",) for name, path in tuned.items()}}
    programs = []
    for name, own in flags.items():
        vmfb = place / f"{name}.vmfb"
        compile_model(model, own, None, vmfb)
        programs.append({**Compiled(name, "", vmfb, entry, ()).to_json(), "parameters": [*map(str, parameters)]})
    with ExitStack() as stack:
        process = stack.enter_context(PeerProcess(IREE_PEERS[IREE], setting.cores))
        request = {
            "ask": "prepare",
            "operator": place.name,
            "inputs": [str(path) for path in input_paths(folder)],
            "output": str(place / "result"),
            "programs": programs,
        }
        ways = process.ask(request, PREPARE_TIMEOUT_S)["ways"]
        differences({way["label"]: [np.load(path) for path in way["outputs"]] for way in ways})
        timed = [TimedWay(IREE, index, way["label"]) for index, way in enumerate(ways) if way["label"] != UNTUNED]
        samples = interleave(
            timed,
            lambda each: process.sample(each.way, setting.sample_s),
            rounds=setting.rounds,
            patience_s=600.0,
            rng=np.random.default_rng(seed),
        )
    return {each.timed.label: each for each in samples}


def interval_of(pairs: Sequence[NetworkPair]) -> tuple[float, float, float]:
    """Return the medians over the seeds of a network: of the ratio, and of the ends of its interval.

    The widest interval of any seed would reach 1 the sooner the more seeds there are.
    """
    each = ((pair.ratio.median, pair.ratio.low, pair.ratio.high) for pair in pairs)
    middle, low, high = map(median, zip(*each, strict=True))
    return middle, low, high


def by_network(pairs: Sequence[NetworkPair]) -> dict[str, list[NetworkPair]]:
    """Return pairs by network, in the order of their first ones."""
    names = dict.fromkeys(pair.network for pair in pairs)
    return {name: [pair for pair in pairs if pair.network == name] for name in names}


def results_table(pairs: Sequence[NetworkPair], setting: Setting, publishing: Publishing) -> ResultTable:
    """Return a table with a row per network."""
    a, b = (setting.options[name] or "none" for name in (A, B))
    columns: Columns[Sequence[NetworkPair]] = {
        ResultColumn("runs", Unit.COUNT): len,
        ResultColumn("B over A", Unit.RATIO, Better.BELOW): lambda own: figure(*interval_of(own)),
        ResultColumn("of every seed"): lambda own: ", ".join(f"{pair.ratio.median:.2f}" for pair in own),
        **{ResultColumn(f"trials of {name}", Unit.NUMBER): partial(_trials, name) for name in (A, B)},
    }
    return publishing.table(
        name=f"strategies-networks-{setting.arm}-{setting.minutes:g}-minutes",
        question="search",
        title=f"Networks with and without {setting.arm}, {setting.minutes:g} minutes",
        threads=setting.target.cores,
        seeds=sorted({pair.seed for pair in pairs}),
        interleaving="Programs of both in turns, on the same pinned cores",
        spread="medians over the seeds of the ends of their 95 % intervals",
        rows_are="model",
        columns=columns,
        rows=by_network(pairs).items(),
        notes=(f"Options of A: {a}; of B: {b}.",),
    )


def _trials(name: str, pairs: Sequence[NetworkPair]) -> float:
    return median(pair.tuning[name].trials for pair in pairs)
