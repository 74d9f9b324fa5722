"""A model that changed in one layer: its other dispatches are the same tasks and use the earlier scripts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from command_line import Cli
from program_folders import CLAIM

from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tasks.task import Task
from mlir_sched.tuned_folder.installation import EmittedFiles, install

pytestmark = pytest.mark.promise

SHARED, BEFORE, AFTER = ("128x256", "64x512"), "96x320", "80x320"
LAYER = """
  %e{number} = tensor.empty() : tensor<{shape}xf32>
  %y{number} = linalg.softmax dimension(1) ins(%x{number} : tensor<{shape}xf32>)
    outs(%e{number} : tensor<{shape}xf32>) -> tensor<{shape}xf32>"""


def network(shapes: Sequence[str]) -> str:
    """Return a model with a softmax per shape."""
    arguments = ", ".join(f"%x{number}: tensor<{shape}xf32>" for number, shape in enumerate(shapes))
    types = ", ".join(f"tensor<{shape}xf32>" for shape in shapes)
    body = "".join(LAYER.format(number=number, shape=shape) for number, shape in enumerate(shapes))
    results = ", ".join(f"%y{number}" for number in range(len(shapes)))
    return f"func.func @main({arguments}) -> ({types}) {{{body}\n  return {results} : {types}\n}}\n"


def extracted(path: Path, shapes: Sequence[str], target: Target) -> Model:
    """Return a model, written to a file, with its tasks."""
    path.write_text(network(shapes))
    return extract(path, target, TASK_FLAGS)


def sequence(symbol: str, task: Task, target: Target) -> TunedSequence:
    """Return a random script for a task."""
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    trace = space.sample(np.random.default_rng(0), space.sketches[0])
    return TunedSequence(symbol, task.source, space, trace, {"dispatch": task.name}, task.name)


def test_dispatches_that_both_models_have_are_one_task_and_use_one_script(cli: Cli, here: Target) -> None:
    before = extracted(cli.folder / "before.mlir", [*SHARED, BEFORE], here)
    after = extracted(cli.folder / "after.mlir", [*SHARED, AFTER], here)
    keys = {task.key for task in before.tasks} & {task.key for task in after.tasks}
    assert {task.key for task in before.tasks if BEFORE not in task.name} == keys
    assert len(keys) == len(SHARED)
    library = build_library([sequence(f"tuned_{number}", task, here) for number, task in enumerate(before.tasks)])
    (cli.folder / "tuned").mkdir()
    install(cli.folder.resolve() / "tuned", CLAIM, EmittedFiles(library, here.flags), json.dumps({"target": here.name}))
    ended = cli("compile", "after.mlir", "--tuned", "tuned", "--json")
    assert ended.code == 0, ended.err
    found = json.loads(ended.out)
    names = {f"tuned_{number}": task.name for number, task in enumerate(before.tasks)}
    assert found["unused"] == {symbol: name for symbol, name in names.items() if BEFORE in name}
    assert found["applied"].keys() == names.keys() - found["unused"].keys()
    assert all(len(dispatches) == 1 for dispatches in found["applied"].values())
