"""Distributions that register rewrites, installed for a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from folders import SUPPORT

from mlir_sched.program.rewrites.offered import ENTRY_POINTS


def register(value: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution that registers rewrites, for this process and its children."""
    installed = folder / "row_products-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: row-products\nVersion: 0\n")
    (installed / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\nproducts = {value}\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, (SUPPORT, folder))))
