"""A tuned folder whose program has its attention in one dispatch: replayed, compiled, and with the decision edited."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from attention_programs import LOOPS, PLAIN, with_constant_scale
from command_line import Cli
from edited_decisions import with_word
from iree_cases import FLAGS
from program_folders import install_program, tasks_under
from rewriting import run

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.library.library import program_decisions
from mlir_sched.program.plan import Site
from mlir_sched.program.program_space import VARIANT, decision
from mlir_sched.program.rewrites.attention.decomposed import Attentions
from mlir_sched.program.variants.early_decisions import ATTENTION
from mlir_sched.program.variants.rewritten import decided_variant
from mlir_sched.replaying.replay_result import NOT_IN_EDITED
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target

pytestmark = pytest.mark.landing

SIZES = dict(zip(LOOPS, (1, 2, 256, 16, 512, 16), strict=True))
SITE = Site(Attentions(), "2x256x512x16")
DECISION = decision(SITE)


@pytest.fixture
def tuned(cli: Cli, here: Target) -> Path:
    """A folder with a script for the attention."""
    model, folder = cli.folder / "model.mlir", cli.folder / "tuned"
    model.write_text(with_constant_scale(PLAIN.text(sizes=SIZES)))
    variant = decided_variant(model, here, {VARIANT: ATTENTION, DECISION: Attentions.other})
    spaces = {
        task.key: (task, DesignSpace(Space.default(here), task.dispatch, here))
        for task in tasks_under(model, here, variant)
        if task.dispatch is not None
    }
    task, space = next((task, space) for task, space in spaces.values() if "attention" in space.sketches)
    install_program(folder, here, variant, (SITE,), task, space, "attention")
    return folder


def test_the_folder_is_replayed_and_compiled(cli: Cli, tuned: Path) -> None:
    document = json.loads(cli("replay", tuned, "model.mlir", "--json").out)
    (sequence,) = document["sequences"]
    assert (document["state"], sequence["applied"]) == ("as tuned", 1)
    compiled = json.loads(cli("compile", "model.mlir", "--tuned", tuned, "-o", "tuned.vmfb", "--json").out)
    assert compiled["rewrite"] == f"{ATTENTION}+fused_attention(2x256x512x16)"
    assert not compiled["unused"]
    queries, keys, values = np.random.default_rng(0).standard_normal((3, 2, 512, 16), np.float32)
    inputs = [queries[:, :256], keys, values]
    expected = run(compile_to_bytes(cli.folder / "model.mlir", FLAGS), inputs)
    np.testing.assert_allclose(run((cli.folder / "tuned.vmfb").read_bytes(), inputs), expected, rtol=1e-5, atol=1e-6)


def test_the_attention_becomes_three_dispatches_by_an_edit(cli: Cli, tuned: Path) -> None:
    library = tuned / "library.mlir"
    library.write_text(with_word(library.read_text(), DECISION, Attentions.other, Attentions.own))
    document = json.loads(cli("replay", tuned, "model.mlir", "-o", "edited", "--json").out)
    (sequence,) = document["sequences"]
    assert document["state"] == "decisions edited"
    assert (sequence["note"], sequence["applied"]) == (NOT_IN_EDITED, 0)
    written = (cli.folder / "edited" / "library.mlir").read_text()
    assert {d.name: d.value for d in program_decisions(written)} == {VARIANT: ATTENTION, DECISION: Attentions.own}
