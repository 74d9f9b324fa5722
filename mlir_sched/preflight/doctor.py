"""The examination of this machine as a place to tune: versions, target, cores, noise."""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from mlir_sched import __version__
from mlir_sched.compiler.version import SUPPORTED, compiler_version
from mlir_sched.gpu_model.ptxas import find_assembler
from mlir_sched.preflight.room import require_scratch
from mlir_sched.processes.memory import child_memory_bytes, machine_memory_bytes, mebibytes
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.targets import KINDS, available_cpus, detect_target, target_kind
from mlir_sched.targets.machine import local_task_workers
from mlir_sched.tuning.options import TuneOptions

OLDEST_PYTHON = (3, 11)
NOISE_S = 2.0
"""Seconds for which the machine's noise is measured."""
FREE_BYTES = 512 << 20
"""Free bytes in the temporary folder below which the compilation of a large model may fail."""
_GOVERNOR = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


class Status(StrEnum):
    """What a finding means for tuning."""

    OK = "ok"
    WARNING = "warning"
    UNAVAILABLE = "unavailable"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """One thing that was examined.

    Attributes:
        status: What the finding means: a problem makes tuning impossible, an unavailable target rules out only itself.
        advice: What to do about the finding.
    """

    name: str
    value: str
    status: Status = Status.OK
    advice: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """All findings on this machine."""

    findings: tuple[Finding, ...]

    @property
    def can_tune(self) -> bool:
        """Whether tuning is possible here."""
        return all(finding.status is not Status.PROBLEM for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the diagnosis as JSON data."""
        return {"can_tune": self.can_tune, "findings": [asdict(finding) for finding in self.findings]}


def diagnose(noise_s: float = NOISE_S) -> Diagnosis:
    """Examine everything that tuning depends on; never raise."""
    findings = [*_versions(), *_attempt("machine", lambda: list(_machine()))]
    for name in KINDS.names():
        findings += _target(name)
    findings += _assembler()
    if all(finding.status is not Status.PROBLEM for finding in findings):
        findings += _attempt("timing noise", lambda: _noise(noise_s))
    return Diagnosis(tuple(findings))


def _versions() -> Iterator[Finding]:
    old = sys.version_info < OLDEST_PYTHON
    yield Finding(
        "python", platform.python_version(), Status.PROBLEM if old else Status.OK, "install Python 3.11" if old else ""
    )
    yield Finding("mlir-sched", __version__)
    yield from _attempt(
        "iree compiler", lambda: [Finding("iree compiler", f"{compiler_version()} (needed: {SUPPORTED}.x)")]
    )
    yield _package("iree runtime", "iree-base-runtime", series=SUPPORTED)
    yield _package("numpy", "numpy")
    yield _package("xgboost", "xgboost-cpu", "xgboost")


def _package(name: str, *distributions: str, series: str = "") -> Finding:
    """Return the version of the first of the distributions that is installed."""
    for distribution in distributions:
        try:
            found = version(distribution)
        except PackageNotFoundError:
            continue
        if series and not found.startswith(f"{series}."):
            return Finding(name, found, Status.PROBLEM, f"pip install '{distribution}=={series}.*'")
        return Finding(name, f"{found} (needed: {series}.x)" if series else found)
    return Finding(name, "not installed", Status.PROBLEM, f"pip install {distributions[0]}")


def _machine() -> Iterator[Finding]:
    usable, logical = available_cpus(), os.cpu_count() or 1
    physical = psutil.cpu_count(logical=False) or logical
    advice = "other work disturbs every timing, and races between threads are not looked for" if usable == 1 else ""
    status = Status.WARNING if usable == 1 else Status.OK
    yield Finding("cores", f"{usable} usable of {logical} logical, {physical} physical", status, advice)
    yield from _attempt("threads", lambda: [Finding("threads", f"tune uses {local_task_workers()} by default")])
    yield Finding("load", f"{os.getloadavg()[0]:.1f} processes in the last minute")
    total, most = machine_memory_bytes(), child_memory_bytes()
    yield Finding("memory", f"{mebibytes(total)}; a process that compiles or runs may take {mebibytes(most)}")
    if _GOVERNOR.is_file():
        governor = _GOVERNOR.read_text().strip()
        fixed = governor == "performance"
        advice = "" if fixed else "set it to performance while tuning: cpupower frequency-set -g performance"
        yield Finding("frequency governor", governor, Status.OK if fixed else Status.WARNING, advice)
    yield from _attempt("temporary folder", _scratch)


def _scratch() -> list[Finding]:
    folder = require_scratch()
    free = shutil.disk_usage(folder).free
    enough = free >= FREE_BYTES
    advice = "" if enough else "make room, or set TMPDIR to another folder"
    value = f"{folder}, {free >> 20} MiB free"
    return [Finding("temporary folder", value, Status.OK if enough else Status.WARNING, advice)]


def _target(name: str) -> list[Finding]:
    found = _attempt(f"target {name}", lambda: _facts(name))
    if name == TuneOptions().target:
        return found
    return _dispensable(found)


def _assembler() -> list[Finding]:
    return _dispensable(_attempt("ptxas", lambda: [Finding("ptxas", str(find_assembler()))]))


def _dispensable(found: list[Finding]) -> list[Finding]:
    """Return findings on what one target needs, without which others can be tuned for."""
    return [replace(f, status=Status.UNAVAILABLE) if f.status is Status.PROBLEM else f for f in found]


def _facts(name: str) -> list[Finding]:
    target = detect_target(name, 1)
    return [Finding(f"{name}: {what}", value) for what, value in target_kind(name).facts(target)]


def _noise(seconds: float) -> list[Finding]:
    with Runner(RunnerOptions()) as runner:
        noise = runner.noise(seconds)
    quiet = noise.verdict.startswith("quiet")
    advice = "" if quiet else "stop other work, pin nothing else to these cores, and do not tune two models at once"
    value = f"{noise.lost:.1%} of the time lost to others, spread {noise.spread:.1%}; {noise.verdict}"
    return [Finding("timing noise", value, Status.OK if quiet else Status.WARNING, advice)]


def _attempt(name: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return look()
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else type(error).__name__
        found, _, advice = text.partition("; ")
        return [Finding(name, found, Status.PROBLEM, advice or "see the message")]
