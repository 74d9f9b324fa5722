"""The search layer alone, in processes of its own."""

import os
import subprocess
import sys

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
from mlir_sched.search.conformance import SPACE, run_search
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


def test_the_same_seed_suggests_the_same_in_three_processes_without_iree() -> None:
    suggestions, hashes = zip(*[run_python(WHOLE_SEARCH, seed) for seed in ("0", "1", "2")], strict=True)
    assert len(set(hashes)) == 3
    assert len(set(suggestions)) == 1
    assert len(suggestions[0].split()) == 64


def test_importing_search_and_models_does_not_load_xgboost_or_matplotlib() -> None:
    code = "import sys, mlir_sched.search, mlir_sched.models; print(*sorted({n.split('.')[0] for n in sys.modules}))"
    loaded = run_python(code, "0")[0].split()
    assert not {"xgboost", "scipy", "matplotlib", "iree"} & set(loaded)
