"""CMake as tests call it, and a compiler in place of iree-compile."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from folders import ROOT

PACKAGE = ROOT / "mlir_sched" / "cmake"
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
PROGRAM = """#!/bin/sh
for last; do :; done
echo "module of $(date +%N)" > "$last"
"""
ENCODER = """#!/bin/sh
words=$(printf '%s\\n' "$MLIR_SCHED_IREE_COMPILE" "$@")
while [ $# -gt 0 ]; do
  case "$1" in
    -o) echo "$words" > "$2" ;;
    --encode) echo weights > "${2#*=}" ;;
  esac
  shift
done
"""


def run(*command: object, ok: bool = True) -> str:
    """Run a command with the Python environment of this test in front of the path; return all it printed."""
    words = [str(word) for word in command]
    result = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (result.returncode == 0) == ok, result.stdout + result.stderr
    return result.stdout + result.stderr


def configure(source: Path, build: Path, *options: str, package: Path | None = PACKAGE, ok: bool = True) -> str:
    """Configure a project, by default with the CMake package of this checkout."""
    where = () if package is None else (f"-Dmlir_sched_DIR={package}",)
    return run("cmake", "-S", source, "-B", build, *where, *options, ok=ok)


def quick_compiler(folder: Path) -> Path:
    """Return a program that writes another module every time, in a folder as a distribution of IREE has it."""
    program, library = folder / "bin" / "iree-compile", folder / "lib" / "libIREECompiler.so"
    for file in (program, library):
        file.parent.mkdir(parents=True)
    program.write_text(PROGRAM)
    program.chmod(0o755)
    library.touch()
    return program


def quick_encoder(program: Path) -> Path:
    """Write a program in place of mlir-sched, which writes the compiler and its arguments into the module."""
    program.write_text(ENCODER)
    program.chmod(0o755)
    return program
