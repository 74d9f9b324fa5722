"""The properties of this machine that measured times depend on: its processor and IREE's runtime."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_X86 = ("model name", "cpu family", "model")
_ARM = ("CPU implementer", "CPU architecture", "CPU variant", "CPU part")


def cpu_model(cpuinfo: Path = _CPUINFO) -> str:
    """Return the name of the processor as its maker gives it, e.g. ``AMD EPYC 9454 48-Core Processor``."""
    return _first_cpu(cpuinfo).get("model name") or platform.processor() or platform.machine()


def cpu_identity(cpuinfo: Path = _CPUINFO) -> str:
    """Return a text that tells processors apart, even virtual processors that report only a short name.

    Returns:
        Name, family and model (``AMD EPYC/26/2``); on ARM implementer, architecture, variant and part
        (``0x41/8/0x1/0xd40``); :func:`cpu_model` where the kernel reports none of these.
    """
    known = _first_cpu(cpuinfo)
    names = _X86 if _X86[0] in known else _ARM
    return "/".join(known[name] for name in names if name in known) or cpu_model(cpuinfo)


def runtime_version() -> str:
    """Return the version of IREE's runtime; ``none`` when it is not installed."""
    try:
        return version("iree-base-runtime")
    except PackageNotFoundError:
        return "none"


def _first_cpu(cpuinfo: Path) -> dict[str, str]:
    """Return the kernel's description of the first processor; empty where it has none."""
    try:
        block, _, _ = cpuinfo.read_text().partition("\n\n")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in block.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
