"""This machine, as far as measured times depend on it: its processor, and IREE's runtime with its executables."""

import importlib.util
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.memory import child_memory_bytes

_CPUINFO = Path("/proc/cpuinfo")
_X86 = ("model name", "cpu family", "model")
_ARM = ("CPU implementer", "CPU architecture", "CPU variant", "CPU part")
_PACKAGE = "iree._runtime_libs"
_TIMEOUT_S = 60.0
_WORKERS = re.compile(r"^# topology\[\d+\]: (\d+) worker groups", re.MULTILINE)


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


def runtime_tool(name: str) -> str:
    """Return the path of an executable of IREE's runtime package, such as ``iree-benchmark-module``.

    Raises:
        UserError: The package is not installed, or lacks the executable.
    """
    spec = importlib.util.find_spec(_PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (tool := Path(folder) / name).is_file():
            return str(tool)
    raise UserError(f"iree-base-runtime has no {name}; install iree-base-runtime 3.13")


def local_task_workers() -> int:
    """Return how many threads IREE's ``local-task`` starts by default on the CPUs that this process may use.

    IREE decides: one thread per physical core of one NUMA node, and at most 64.

    Raises:
        UserError: IREE's tools do not tell.
    """
    try:
        limits = ChildLimits(_TIMEOUT_S, child_memory_bytes())
        ended = run_program([runtime_tool("iree-run-module"), "--dump_task_topologies"], limits)
        workers = sum(map(int, _WORKERS.findall(ended.output.decode(errors="replace"))))
    except ChildError:
        workers = 0
    if workers < 1:
        raise UserError("iree-run-module does not tell how many threads it starts here; give the number of threads")
    return workers
