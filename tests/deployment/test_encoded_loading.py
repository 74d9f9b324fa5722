"""What loading takes with encoded weights, beside what a tuned folder says of loading before that."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import pytest
from made_result import LOADING, WHOLE

from mlir_sched.compiler.worker_process import JobError
from mlir_sched.deployment import encoded
from mlir_sched.deployment.encoded import EncodedLoading, encoded_loading
from mlir_sched.errors import EnvironmentFailureError, MlirSchedError, UserError
from mlir_sched.outcome import LoadCost
from mlir_sched.program.encoding import EncodedProgram
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import RunnerOptions
from mlir_sched.tasks import Model
from mlir_sched.tuned_folder.folder import TunedFolder

MODEL, COST = Model("program.mlir", (), (), ()), LoadCost(0.01, 90, 80)
OWN: dict[str, Any] = WHOLE.to_json()["program"]["loading"]


class Known(EncodedProgram):
    """A program whose functions are known, or are not."""

    why = ""

    def as_model(self) -> Model:
        if self.why:
            raise UserError(self.why)
        return MODEL


PROGRAM = Known(Path("program.mlir"), ())


def folder(**program: object) -> TunedFolder:
    summary = {"threads": 1, "program": program}
    return TunedFolder(Path("tuned"), (), "", Path("tuned/library.mlir"), None, summary)


@pytest.fixture(autouse=True)
def _known_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_cost(options: RunnerOptions, model: Model, compiled: CompiledModel) -> LoadCost:
        assert (options.threads, model, compiled) == (1, MODEL, CompiledModel(b"code", local_sync=True))
        return COST

    monkeypatch.setattr(encoded, "load_cost", load_cost)


def test_both_are_known_where_the_run_measured_loading() -> None:
    assert encoded_loading(folder(device="local-sync", loading=OWN), PROGRAM, b"code") == EncodedLoading(COST, LOADING)


@pytest.mark.parametrize(
    "damaged",
    [None, "text", {}, {"untuned": OWN["untuned"]}, {**OWN, "tuned": {**OWN["tuned"], "seconds": "long"}},
     {**OWN, "tuned": {**OWN["tuned"], "peak_bytes": float("inf")}}],
)  # fmt: skip
def test_a_folder_that_does_not_say_what_loading_took_costs_no_measurement(damaged: object) -> None:
    found = encoded_loading(folder(device="local-sync", loading=damaged), PROGRAM, b"code")
    assert found == EncodedLoading(COST, None)


@pytest.mark.parametrize("error", [EnvironmentFailureError("the process is lost"), JobError("a traceback")])
def test_nothing_is_known_where_the_program_cannot_be_called(
    error: MlirSchedError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> NoReturn:
        raise error

    dynamic = Known(PROGRAM.program, ())
    object.__setattr__(dynamic, "why", "dynamic shapes are not supported yet")
    assert encoded_loading(folder(device="local-sync"), dynamic, b"code") is None
    monkeypatch.setattr(encoded, "load_cost", fails)
    assert encoded_loading(folder(device="local-sync"), PROGRAM, b"code") is None
