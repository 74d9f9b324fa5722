"""A decision about the whole program that is edited by hand: replayed, written, compiled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from channels_first_networks import SHAPES, two_shapes
from command_line import Cli
from edited_decisions import with_word
from plans import convolution_sites
from program_folders import SCRIPT, install_program, tasks_under

from mlir_sched.library.library import program_decisions
from mlir_sched.program.program_space import VARIANT
from mlir_sched.program.rewrites.convolution.winograd import Convolutions
from mlir_sched.program.variants.rewritten import decided_variant
from mlir_sched.replaying.replay_result import NOT_IN_EDITED
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target

pytestmark = pytest.mark.landing


@pytest.fixture
def tuned(cli: Cli, here: Target) -> Path:
    """A folder with channels last, and a script for the convolution of the second shape."""
    model, folder = cli.folder / "model.mlir", cli.folder / "tuned"
    model.write_text(two_shapes())
    variant = decided_variant(model, here, {VARIANT: "channels_last"})
    task = next(task for task in tasks_under(model, here, variant) if "64" in task.name and "conv" in task.name)
    assert task.dispatch is not None
    space = DesignSpace(Space.default(here), task.dispatch, here)
    install_program(folder, here, variant, convolution_sites(*SHAPES), task, space, space.sketches[0])
    return folder


def edit(folder: Path, name: str, old: str, new: str) -> None:
    library = folder / "library.mlir"
    library.write_text(with_word(library.read_text(), name, old, new))


def test_an_edited_algorithm_is_replayed_written_and_compiled(cli: Cli, tuned: Path) -> None:
    shown = cli("inspect", "tuned").out
    assert "the whole program" in shown
    assert "algorithm 16x16x32x64" in shown
    edit(tuned, "algorithm 16x16x32x64", Convolutions.own, Convolutions.other)
    refused = cli.refused("compile", "model.mlir", "--tuned", "tuned")
    assert "algorithm 16x16x32x64 direct -> winograd" in refused
    assert "replay" in refused
    ended = cli("replay", "tuned", "model.mlir", "-o", "edited", "--json")
    document = json.loads(ended.out)
    assert document["program"], "the numbers are right; whether the program is faster is the machine's"
    assert document["state"] == "decisions edited"
    assert "algorithm 16x16x32x64 direct -> winograd" in document["note"]
    (sequence,) = document["sequences"]
    assert (sequence["note"], sequence["applied"]) == (NOT_IN_EDITED, 0)

    library = (cli.folder / "edited" / "library.mlir").read_text()
    expected = {
        VARIANT: "channels_last",
        "algorithm 16x16x32x32": Convolutions.own,
        "algorithm 16x16x32x64": Convolutions.other,
    }
    assert {d.name: d.value for d in program_decisions(library)} == expected
    compiled = json.loads(cli("compile", "model.mlir", "--tuned", "edited", "--json").out)
    assert compiled["rewrite"] == "channels_last+winograd(16x16x32x64)"
    assert list(compiled["unused"]) == [SCRIPT], "it waits for the algorithm that it was made for"
    edit(cli.folder / "edited", "algorithm 16x16x32x64", Convolutions.other, Convolutions.own)
    back = json.loads(cli("replay", "edited", "model.mlir", "--json").out)
    assert back["state"] == "decisions edited"
    assert back["sequences"][0]["applied"] == 1


def test_an_illegal_decision_about_the_program_is_refused(cli: Cli, tuned: Path) -> None:
    edit(tuned, VARIANT, "channels_last", "sideways")
    ended = cli("replay", "tuned", "model.mlir", "-o", "edited")
    assert ended.code == 1
    assert "a decision about the whole program is refused" in ended.out
    assert "edited was not written" in ended.out
    assert not (cli.folder / "edited").exists()
    assert "sideways" in cli("inspect", "tuned").out
