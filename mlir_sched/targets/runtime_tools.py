"""The executables of IREE's runtime package, and what they say of its worker threads on this machine."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

from mlir_sched.errors import UserError
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.memory import child_memory_bytes

_PACKAGE = "iree._runtime_libs"
_TIMEOUT_S = 60.0
_WORKERS = re.compile(r"^# topology\[\d+\]: (\d+) worker groups", re.MULTILINE)


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
