"""A GPU driver's answer about this machine's devices, asked in a separate process."""

from __future__ import annotations

from mlir_sched.processes.executable import Ended, run_program
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.python_child import python_command

_TIMEOUT_S = 60.0


def ask_driver(module: str) -> Ended:
    """Return how a module that loads a driver ended, with what it wrote.

    The module runs in a separate process, so that a driver that crashes ends only that process.

    Raises:
        ChildError: The driver gave no answer in a minute, or took too much memory.
    """
    return run_program(python_command(module), ChildLimits(_TIMEOUT_S, child_memory_bytes()))
