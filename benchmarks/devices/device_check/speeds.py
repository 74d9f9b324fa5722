"""The second part of the check: programs are tuned, and their times compared with PyTorch's and the device's peak."""

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.folders import path_of
from benchmarks.operators.table import flops_of
from mlir_sched.errors import MlirSchedError
from mlir_sched.pipeline import tune
from mlir_sched.targets.target import GpuResources, Target
from mlir_sched.tasks import extract
from mlir_sched.tuned_folder.result import TuneResult
from mlir_sched.tuning.options import TuneOptions

LEAST_MINUTES = 0.4
"""Least minutes for which a program is tuned."""
TORCH_SCRIPT = Path(__file__).with_name("torch_times.py")
TORCH_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class Speed:
    """A tuned program.

    Attributes:
        name: Name of the program.
        flops: Floating-point operations of a call.
        result: The run's result.
        torch_call_s: Seconds of a whole call in PyTorch; None where no equivalent is known, or there is no PyTorch.
        torch_row_s: Seconds of one of many calls in a row there.
    """

    name: str
    flops: int
    result: TuneResult
    torch_call_s: float | None = None
    torch_row_s: float | None = None

    @property
    def dispatches_s(self) -> float:
        """Seconds of all dispatches of a call, each timed alone, with what was emitted for it."""
        return sum(dispatch.seconds_per_run for dispatch in self.result.dispatches)

    def share_of_peak(self, resources: GpuResources | None) -> float | None:
        """Return the operations per second of the dispatches relative to the device's peak; None without figures.

        Programs with f16 in their names count against the tensor cores' peak, others against that of f32.
        """
        if resources is None or not self.dispatches_s:
            return None
        per_clock = resources.matrix_multiply_adds if "f16" in self.name else resources.multiply_adds
        peak = 2 * per_clock * resources.multiprocessors * resources.clock_hz
        return self.flops / self.dispatches_s / peak


@dataclass(frozen=True)
class Speeds:
    """All tuned programs.

    Attributes:
        speeds: The programs that were tuned.
        problems: Why others were not, and what PyTorch lacks.
    """

    speeds: tuple[Speed, ...]
    problems: tuple[str, ...]


def tune_programs(
    names: Sequence[str],
    target: Target,
    target_name: str,
    *,
    threads: int | None,
    python: str,
    until_s: float,
    seed: int,
    keep: Path | None = None,
) -> Speeds:
    """Tune programs in equal parts of the time that is left.

    Args:
        target_name: Its name for ``--target``.
        threads: Threads of a CPU; None for a device.
        python: A Python that has PyTorch; empty for no comparison.
        until_s: Time (``time.monotonic``) at the end.
        keep: Folder in which the tuned folders are kept, by the names of the programs; None keeps none.
    """
    torch, problems = _torch_times(names, target, python)
    speeds = list[Speed]()
    for position, name in enumerate(names):
        minutes = (until_s - time.monotonic()) / 60 / (len(names) - position)
        if minutes < LEAST_MINUTES:
            problems.append(f"{name}: no time was left to tune it")
            continue
        try:
            path = path_of(name)
            options = TuneOptions(target=target_name, minutes=minutes, seed=seed, threads=threads)
            with tempfile.TemporaryDirectory() as folder:
                result = tune(path, keep / name if keep else folder, options=options)
            timed = torch.get(name) or {}
            flops = flops_of(extract(path, target))
            speeds.append(Speed(name, flops, result, timed.get("call_s"), timed.get("row_s")))
        except MlirSchedError as error:
            problems.append(f"{name}: {error}")
    return Speeds(tuple(speeds), tuple(problems))


def _torch_times(
    names: Sequence[str], target: Target, python: str
) -> tuple[Mapping[str, Mapping[str, float] | None], list[str]]:
    """Return PyTorch's times by program, and what is to be said of them."""
    if not python:
        return {}, ["PyTorch: not asked"]
    device = "cuda" if target.name == "cuda" else "cpu"
    command = [python, str(TORCH_SCRIPT), device, *names]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TORCH_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        return {}, [f"PyTorch: {(error.stderr.strip().splitlines() or ['it fails'])[-1]}"]
    except (OSError, subprocess.TimeoutExpired) as error:
        return {}, [f"PyTorch: {error}"]
    found = json.loads(done.stdout)
    return found["times"], [f"PyTorch {found['version']} on {device}"]
