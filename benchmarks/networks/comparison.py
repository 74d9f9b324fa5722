"""The comparison of one network: export, tune, check all results against PyTorch's, sample all engines in turns."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.figures.rows import IREE
from benchmarks.figures.sampling import Samples, TimedWay, interleave, ratio
from benchmarks.networks.modules import input_paths
from benchmarks.operators.comparison import IREE_PEERS
from benchmarks.operators.programs import TUNED, Compiled, tune_once
from benchmarks.peers.client import PeerProcess, PeerSpec, run_module
from benchmarks.peers.tuning import Tuning
from mlir_sched import TuneOptions
from mlir_sched.compiler import ModelCompileError, compile_model
from mlir_sched.runner.statistics import Interval
from mlir_sched.targets import target_kind
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tuned_folder.names import FLAGS

Arrays = Sequence[np.ndarray[Any, Any]]
UNTUNED, OTHER_FLAGS = "IREE", "IREE, best flags"
"""Columns of the untuned programs: plain ``iree-compile``, and the fastest of IREE's other flags."""
TOLERANCE = 1e-4
"""Largest difference from PyTorch's result, relative to the largest result: sums of up to 4608 products in f32, in
another order and over 100 layers; a missing term of one product changes results by far more."""
SCOPE = "model"
"""The scope of a network's weights."""
EXPORT_TIMEOUT_S, PREPARE_TIMEOUT_S = 1800.0, 900.0


@dataclass(frozen=True)
class Setting:
    """How networks are compared.

    Attributes:
        target: What IREE compiles for; its ``cores`` are the threads.
        cores: The cores on which everything is timed.
        engines: The peer with the engines.
        tuners: Peers that tune networks of their own, each for ``minutes``, too.
        minutes: Minutes of tuning per network.
        seed: Seed of the search and of the order of samples.
        rounds: Samples of each way.
        sample_s: Seconds of a sample.
        folder: Keeps what is exported and tuned, a folder per network; a later run goes on there. Runs with other
            minutes, seeds or threads share the exports alone.
    """

    target: Target
    cores: tuple[int, ...]
    engines: PeerSpec
    tuners: tuple[PeerSpec, ...]
    minutes: float
    seed: int
    rounds: int
    sample_s: float
    folder: Path

    @property
    def options(self) -> TuneOptions:
        """How a network is tuned."""
        return TuneOptions(minutes=self.minutes, threads=self.target.cores, seed=self.seed)

    def tuned(self, network: Path) -> Path:
        """Return the folder of the tuned program in the folder of a network."""
        return network / f"tuned-{run_name(self.options)}"


@dataclass(frozen=True)
class Result:
    """The comparison of one network.

    Attributes:
        network: Its name.
        seconds: Median seconds per call, by column; of the ways of one column the fastest.
        over_best: Time of mlir-sched over the time of the fastest engine; above 1 means that the engine is faster.
        best: The fastest engine, a tuner included.
        tuning: Trials and seconds of tuning.
        others: Trials and seconds of the tuners, by column; those of ``torch.compile``, too.
        seed, minutes, threads: How it was compared.
        errors: Largest difference from PyTorch's result relative to the largest result, by column.
    """

    network: str
    seconds: dict[str, Interval]
    over_best: Interval
    best: str
    tuning: Tuning
    errors: dict[str, float]
    others: dict[str, Tuning] = field(default_factory=dict)
    seed: int = 0
    minutes: float = 0.0
    threads: int = 1


def run_name(options: TuneOptions) -> str:
    """Return what tells runs on one network apart, as a part of the names of folders."""
    return f"{options.minutes:g}-minutes-{options.threads}-threads-seed-{options.seed}"


class WrongResultError(Exception):
    """A way's result differs from PyTorch's; the message says whose and how much."""


def compare_network(name: str, setting: Setting) -> Result:
    """Return the results of one network.

    Raises:
        WrongResultError: See there.
        PeerError: The network cannot be exported, or an engine cannot run it.
        UserError: IREE cannot compile the network, or nothing can be tuned.
    """
    folder = (setting.folder / name).resolve()
    export(name, folder, setting.engines, onnx=True)
    tuning = tune_network(folder, setting)
    run = run_name(setting.options)
    own = {"folder": str(folder), "minutes": setting.minutes, "seed": setting.seed, "run": run}
    requests = ((setting.engines, own), (IREE_PEERS[IREE], _programs(folder, setting)))
    with ExitStack() as stack:
        timed_ways, results, processes = list[TimedWay](), dict[str, Arrays](), dict[str, PeerProcess]()
        others = dict[str, Tuning]()
        for spec, extra in (*requests, *((spec, own) for spec in setting.tuners)):
            process = processes[spec.name] = stack.enter_context(PeerProcess(spec, setting.cores))
            request = {
                "ask": "prepare",
                "operator": name,
                "inputs": [str(path) for path in input_paths(folder)],
                "output": str(folder / f"result-{spec.name}"),
            }
            reply = process.ask({**request, **extra}, PREPARE_TIMEOUT_S + 60.0 * setting.minutes)
            others |= {label: Tuning(**tuning) for label, tuning in reply["tuning"].items()}
            for index, way in enumerate(reply["ways"]):
                timed_ways.append(TimedWay(spec.name, index, way["label"], way["detail"]))
                results[f"{way['label']} {way['detail']}".strip()] = [np.load(path) for path in way["outputs"]]
        errors = differences(results)
        samples = interleave(
            timed_ways,
            lambda timed: processes[timed.peer].sample(timed.way, setting.sample_s),
            rounds=setting.rounds,
            patience_s=600.0,
            rng=np.random.default_rng(setting.seed),
        )
    result = result_of(name, samples, tuning, errors)
    return replace(result, others=others, seed=setting.seed, minutes=setting.minutes, threads=setting.target.cores)


def differences(results: Mapping[str, Arrays]) -> dict[str, float]:
    """Return the largest difference of a result from the first way's, relative to that result's largest, by way.

    Raises:
        WrongResultError: A difference is above :data:`TOLERANCE`, or a result is missing, not finite or of another
            shape.
    """
    reference, *_ = results.values()
    found = dict[str, float]()
    for label, arrays in results.items():
        same = len(arrays) == len(reference)
        off = [_difference(*pair) for pair in zip(arrays, reference, strict=True)] if same else [float("inf")]
        found[label] = float(np.max(off))
        if not found[label] <= TOLERANCE:
            raise WrongResultError(f"{label}: off by {found[label]:.2g} of the largest result")
    return found


def _difference(result: np.ndarray[Any, Any], reference: np.ndarray[Any, Any]) -> float:
    largest = float(np.abs(reference).max())
    same = result.shape == reference.shape and largest > 0.0
    return float(np.abs(result - reference).max()) / largest if same else float("inf")


def result_of(name: str, samples: Sequence[Samples], tuning: Tuning, errors: dict[str, float]) -> Result:
    """Return the summary of one network's samples."""
    fastest = dict[str, Samples]()
    for each in sorted(samples, key=lambda each: each.interval.median):
        fastest.setdefault(each.timed.label, each)
    best = next(label for label in fastest if label not in (TUNED, UNTUNED, OTHER_FLAGS))
    over_best = ratio(fastest[TUNED], fastest[best])
    return Result(name, {label: each.interval for label, each in fastest.items()}, over_best, best, tuning, errors)


def export(name: str, folder: Path, engines: PeerSpec, *, onnx: bool = False, part: int = 1) -> None:
    """Write the files of a network into a folder, unless it has them, in the environment of the engines.

    Args:
        engines: The peer whose environment it is.
        onnx: Whether other engines are to run the network, too.
        part: What the lengths of its inputs are divided by.

    Raises:
        PeerError: It cannot be exported.
    """
    files = ("model.mlir", "model.onnx") if onnx else ("model.mlir",)
    if all((folder / name).exists() for name in files):
        return
    further = [*(["--onnx"] if onnx else []), *(["--part", str(part)] if part > 1 else [])]
    arguments = "benchmarks.networks.export", name, str(folder), *further
    run_module(*arguments, timeout_s=EXPORT_TIMEOUT_S, python=engines.python)


def parameters_of(folder: Path) -> tuple[ParameterFile, ...]:
    """Return the file of weights beside an exported network; none where the weights are inside of the program."""
    weights = folder / "weights.irpa"
    return (ParameterFile(SCOPE, str(weights)),) if weights.exists() else ()


def tune_network(folder: Path, setting: Setting) -> Tuning:
    """Tune an exported network, unless its folder holds that run's finished tuning, and return what that took."""
    parameters = [str(file) for file in parameters_of(folder)]
    return tune_once(folder / "model.mlir", setting.tuned(folder), setting.options, parameters)


def _programs(folder: Path, setting: Setting) -> dict[str, Any]:
    """Compile the untuned programs and the tuned one; return what the IREE peer is asked to load.

    IREE's other flags are left out where IREE does not compile the network under them.
    """
    target, model, parameters = setting.target, folder / "model.mlir", parameters_of(folder)
    entry = extract(model, target, parameters=parameters).entries[0]
    flags = {name: (*target.flags, *further) for name, further in target_kind(target.name).variants.items()}
    ways = [(UNTUNED if name == DEFAULT else OTHER_FLAGS, name, flags[name]) for name in flags]
    ways.append((TUNED, "", (f"@{setting.tuned(folder) / FLAGS}",)))
    programs = []
    for number, (label, detail, own) in enumerate(ways):
        vmfb = folder / f"{number}.vmfb"
        try:
            compile_model(model, own, None, vmfb)
        except ModelCompileError:
            if label != OTHER_FLAGS:
                raise
            continue
        programs.append({**Compiled(label, detail, vmfb, entry, ()).to_json(), "parameters": [*map(str, parameters)]})
    return {"programs": programs}
