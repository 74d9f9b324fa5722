"""Where the repository's and the benchmarks' files are."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "benchmarks" / "models"
"""Programs that are tuned."""
DATA = ROOT / "benchmarks" / "data"
"""Spaces measured point by point, and candidates measured on devices."""
