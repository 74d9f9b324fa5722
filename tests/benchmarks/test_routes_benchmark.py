"""Every route from a tuned folder to a program: the program computes the right results, or the route fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from folders import ROOT
from rewriting import run

from benchmarks.tool.routes import RouteError, compiled_by_routes, holds
from mlir_sched.outcome import Timing

PROJECT = ROOT / "examples" / "cmake_project"
STATED = {"ratio_low": 1.9, "ratio": 2.0, "ratio_high": 2.1}


@pytest.mark.landing
def test_all_routes_lead_to_a_program_with_the_right_results() -> None:
    routes = compiled_by_routes(PROJECT / "model.mlir", PROJECT / "tuned")
    assert list(routes) == ["iree-compile @flags.txt", "mlir-sched compile", "CMake"]
    a, b = np.random.default_rng(0).standard_normal((2, 64, 64)).astype(np.float32)
    for route in routes.values():
        np.testing.assert_allclose(run(route.program, [a, b]), a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.landing
def test_a_model_without_the_dispatches_of_the_folder_is_an_error(tmp_path: Path) -> None:
    model = tmp_path / "model.mlir"
    model.write_text((PROJECT / "model.mlir").read_text().replace("64", "72"))
    with pytest.raises(RouteError, match=r"mlir_sched\.cli compile"):
        compiled_by_routes(model, PROJECT / "tuned")


@pytest.mark.parametrize(("low", "high", "as_stated"), [(1.8, 1.95, True), (2.2, 2.3, True), (1.5, 1.85, False)])
def test_a_gain_holds_where_the_intervals_meet_or_it_is_higher(low: float, high: float, as_stated: bool) -> None:
    timing = Timing(1e-3, 1e-3, 1e-3, 9, (low + high) / 2, low, high)
    assert holds(timing, STATED) == as_stated
    assert not holds(None, STATED)
