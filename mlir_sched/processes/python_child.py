"""The command and the environment of a child process that runs one of our modules.

A child imports the very package that this process has imported, from the same folder, and nothing else from around it:
neither from the working directory, nor from the folder that holds the package, nor from inside the package, where
``trace`` would shadow Python's own module of that name.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

_LAUNCHER = Path(__file__).resolve().parent / "launch_module.py"


def python_command(module: str, *arguments: str, python: str | Path = sys.executable) -> list[str]:
    """Return the command that runs a module as a program which can import this package.

    Args:
        module: Its full name, e.g. ``mlir_sched.runner.worker.server``.
        arguments: What the module finds in ``sys.argv[1:]``.
    """
    return [str(python), "-P", str(_LAUNCHER), module, *arguments]


def child_environment(temporary: str | Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a child process.

    Empty entries of ``PYTHONPATH`` are removed: they stand for the working directory, mostly by accident
    (``$PYTHONPATH:/more``).

    Args:
        temporary: Folder for the child's temporary files, which its parent removes.
    """
    environment = {**os.environ, "TMPDIR": str(temporary), **(extra or {})}
    if "PYTHONPATH" in environment:
        entries = environment["PYTHONPATH"].split(os.pathsep)
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in entries if entry)
    return environment
