"""Where the benchmarks' files are."""

from pathlib import Path

HERE = Path(__file__).parent
MODELS = HERE / "models"
"""Programs that are tuned."""
DATA = HERE / "data"
"""Spaces measured point by point, and candidates measured on devices."""
