"""Every route from a tuned folder to a program: the same program comes out, and a route that fails is an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import ROOT

from benchmarks.networks.routes import RouteError, compiled_by_routes, holds
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.outcome import Timing

PROJECT = ROOT / "examples" / "cmake_project"
STATED = {"ratio_low": 1.9, "ratio": 2.0, "ratio_high": 2.1}


def test_all_routes_lead_to_the_same_program() -> None:
    routes = compiled_by_routes(PROJECT / "model.mlir", PROJECT / "tuned")
    assert list(routes) == ["iree-compile @flags.txt", "mlir-sched compile", "CMake"]
    assert len({program_hash(route.program) for route in routes.values()}) == 1


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
