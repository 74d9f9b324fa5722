"""Where the repository's and the benchmarks' files are."""

from pathlib import Path

from mlir_sched.errors import UserError

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "benchmarks" / "models"
"""Programs that are tuned."""
DATA = ROOT / "benchmarks" / "data"
"""Measured candidates and recorded runs."""


def path_of(name: str) -> Path:
    """Return the file of a program of :data:`MODELS`, or of any ``.mlir`` file.

    Raises:
        UserError: There is no such file.
    """
    path = Path(name) if name.endswith(".mlir") else MODELS / f"{name}.mlir"
    if not path.is_file():
        raise UserError(f"{name}: neither a .mlir file nor a program of {MODELS}")
    return path
