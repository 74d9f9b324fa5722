"""The candidates of whole runs are what they were, from one version to the next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from folders import TESTS
from replayed_run import QUICK, HashedMeasurements, matmul_dispatch, program_search, task_of

from mlir_sched.database import RecordStore
from mlir_sched.models import RandomModel
from mlir_sched.tuning.callbacks import Trial, with_callbacks
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.search_method import SearchMethod

CANDIDATES = TESTS / "golden" / "run_candidates.json"
"""The candidates of each run in their order: the name of the task and its trace's digest."""

RUNS = {
    "as by default": TuneOptions(trials=32, round_size=8, seed=3),
    "with all off by name": TuneOptions(
        trials=32, round_size=8, seed=3, transfer="off", templates=False, user_store="off"
    ),
}
METHOD = SearchMethod(QUICK, RandomModel)
"""The cost model is random: trees differ between versions of XGBoost."""


def tried(options: TuneOptions, folder: Path) -> list[str]:
    """Return the candidates of a run over two products, in their order."""
    tasks = [task_of("first", matmul_dispatch(64, 96, 32)), task_of("second", matmul_dispatch(128, 64, 48))]
    heard = list[Trial]()
    with RecordStore.open("sqlite://") as store:
        program = program_search(options, store, tasks, method=METHOD)
        works = ((program, work) for work in program.work(program.run.budget.rest(elsewhere=0)))
        for _, work in with_callbacks(works, [heard.append]):
            work.run(HashedMeasurements(folder / "log"))
    return [f"{trial.dispatch} {trial.trace.key[:16]}" for trial in heard]


@pytest.mark.parametrize("name", RUNS)
def test_a_run_that_begins_from_nothing_tries_what_it_tried(
    name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    found = tried(RUNS[name], tmp_path)
    assert len(found) == len(set(found)) == 32
    if request.config.getoption("--update-golden"):
        CANDIDATES.write_text(json.dumps(found, indent=1) + "\n")
    frozen = json.loads(CANDIDATES.read_text())
    assert found == frozen, "a run tries other candidates; if that is meant: pytest --update-golden"
