"""The search layer alone: the same candidates in every process, and from one version to the next."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from folders import TESTS

from mlir_sched.models import RandomModel, SharedCostModel
from mlir_sched.search import EvolutionarySearch, RandomSearch
from mlir_sched.testing.strategies import SPACE, run_search

CANDIDATES = TESTS / "golden" / "candidates.json"
"""A digest of the candidates of each strategy. The cost model is random: trees differ between versions of XGBoost."""

WHOLE_SEARCH = """
import sys

class NoCompiler:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("iree", "mlir"):
            raise ImportError(f"{name} is out of bounds here")

sys.meta_path.insert(0, NoCompiler())

import numpy as np
import mlir_sched.models
import mlir_sched.search
from mlir_sched.testing.strategies import SPACE, run_search
from mlir_sched.search.evolutionary import EvolutionaryOptions

shared = mlir_sched.models.SharedCostModel(mlir_sched.models.XGBoostModel())
options = EvolutionaryOptions(population=64, generations=2)
search = mlir_sched.search.EvolutionarySearch(SPACE, np.random.default_rng(7), shared, options)
observed = run_search(search, SPACE, 4)
assert shared.fitted
print(*(observation.trace.key for observation in observed))
print(hash("different in every process"), file=sys.stderr)
assert not any(name.split(".")[0] in ("iree", "mlir") for name in sys.modules)
"""


def run_python(code: str, hash_seed: str) -> tuple[str, str]:
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


@pytest.mark.promise
def test_the_same_seed_suggests_the_same_in_three_processes_without_iree() -> None:
    suggestions, hashes = zip(*[run_python(WHOLE_SEARCH, seed) for seed in ("0", "1", "2")], strict=True)
    assert len(set(hashes)) == 3
    assert len(set(suggestions)) == 1
    assert len(suggestions[0].split()) == 64


@pytest.mark.promise
def test_importing_search_and_models_does_not_load_xgboost_or_matplotlib() -> None:
    code = "import sys, mlir_sched.search, mlir_sched.models; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    loaded = run_python(code, "0")[0].split()
    assert not {"xgboost", "scipy", "matplotlib", "iree"} & set(loaded)


def test_candidates_are_what_they_were(request: pytest.FixtureRequest) -> None:
    rng = np.random.default_rng
    searches = {
        "evolutionary": EvolutionarySearch(SPACE, rng(0), SharedCostModel(RandomModel())),
        "random": RandomSearch(SPACE, rng(0)),
    }
    observed = {name: run_search(search, SPACE, 4) for name, search in searches.items()}
    assert {len(found) for found in observed.values()} == {64}
    keys = {name: "".join(each.trace.key for each in found) for name, found in observed.items()}
    found = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in keys.items()}
    if request.config.getoption("--update-golden"):
        CANDIDATES.write_text(json.dumps(found, indent=1) + "\n")
    frozen = json.loads(CANDIDATES.read_text())
    assert found == frozen, "a search tries other candidates; if that is meant: pytest --update-golden"
