"""The command and the environment of a child process that runs one of our modules.

A child finds this very package, wherever it was imported from, and imports nothing else from beside it: neither from
the working directory, nor from the folder that holds the package, nor from inside the package, where ``trace`` and
``target`` would stand in the way of modules of the same name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_LAUNCHER = Path(__file__).resolve().parent / "launch_module.py"


def python_command(module: str, *arguments: str, python: str | Path = sys.executable) -> list[str]:
    """Return the command that runs a module as a program which can import this package.

    Args:
        module: Its full name, e.g. ``mlir_sched.runner.process.server``.
        arguments: What it finds in ``sys.argv[1:]``.
        python: The interpreter.
    """
    return [str(python), "-P", str(_LAUNCHER), module, *arguments]


def child_environment(temporary: str | Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child process.

    An empty entry of ``PYTHONPATH`` stands for the working directory, mostly by accident (``$PYTHONPATH:/more``); it is
    taken out.

    Args:
        temporary: Folder for the child's temporary files, which its parent removes.
        extra: Further variables.
    """
    environment = {**os.environ, "TMPDIR": str(temporary), **(extra or {})}
    if "PYTHONPATH" in environment:
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in entries if entry)
    return environment
