"""Devices of targets: as their drivers describe them, each asked in a process of its own, or as a file does."""

import json
from pathlib import Path
from typing import Any

from mlir_sched.errors import UserError
from mlir_sched.processes.executable import Ended, run_program
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.memory import child_memory_bytes
from mlir_sched.processes.python_child import python_command

_TIMEOUT_S = 60.0
FILE = ".json"
"""How the name of a file ends that describes a device."""


def ask_driver(module: str) -> Ended:
    """Return how a module that loads a driver ended, with what it wrote.

    The module runs in a separate process, so that a driver that crashes ends only that process.

    Raises:
        ChildError: The driver gave no answer in a minute, or took too much memory.
    """
    return run_program(python_command(module), ChildLimits(_TIMEOUT_S, child_memory_bytes()))


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        UserError: The file cannot be read, or is no JSON.
    """
    try:
        return json.loads(path.read_text())
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from error
    except ValueError as error:
        raise UserError(f"{path}: not JSON: {error}") from error
