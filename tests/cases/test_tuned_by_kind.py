"""Programs of many kinds are tuned to the end: how the command ends, what is said of the program and its dispatches.

Each program is compiled in one variant: what competes beside the default says nothing about the kind of a program.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from short_sessions import short_sessions

from mlir_sched.cli import main
from mlir_sched.tuning.variant_choice import VariantChoice

pytestmark = pytest.mark.landing

HERE = Path(__file__).parent
PROGRAMS = sorted(path.stem for path in HERE.glob("*.mlir"))

Tuned = Callable[[str], Mapping[str, Any]]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tuned]:
    """Return a function that tunes a program of this folder, each once, and returns its summary."""

    @cache
    def summary_of(name: str) -> Mapping[str, Any]:
        folder = tmp_path_factory.mktemp(name) / "tuned"
        arguments = ["--trials", "1", "--threads", "1", "--json", "-o", str(folder)]
        assert main(["tune", str(HERE / f"{name}.mlir"), *arguments]) == 0
        found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
        return found

    with short_sessions(), patch.object(VariantChoice, "should_compile", lambda *_: False):
        yield summary_of


@pytest.mark.sweep("nightly", keep="decode")
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_is_right_and_each_of_its_dispatches_has_a_script_or_a_reason(name: str, tuned: Tuned) -> None:
    summary = tuned(name)
    assert summary["program"]["verdict"] == "right"
    rows = summary["dispatches"]
    assert sum(row["share"] for row in rows) == pytest.approx(1.0)
    assert summary["tunable_share"] < 1.001
    assert all(row["tuned"] or row["note"] for row in rows)
    assert not any("internal error" in row["note"] for row in rows)


def test_most_of_a_decode_step_is_in_dispatches_that_can_have_scripts(tuned: Tuned) -> None:
    assert tuned("decode")["tunable_share"] >= 0.9
