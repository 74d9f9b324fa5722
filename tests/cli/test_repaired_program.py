"""A program that IREE compiles wrong is tuned, replayed and compiled as a repaired one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Cli, Ended
from edited_decisions import with_word
from partial_reads import IN_PART

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.program.program_space import VARIANT

pytestmark = pytest.mark.landing
PROGRAM = IN_PART["rows"]


@pytest.fixture
def ended(cli: Cli) -> Ended:
    """How a short run on the program ended."""
    (cli.folder / "model.mlir").write_text(PROGRAM.text)
    return cli("tune", "model.mlir", "--trials", "2", "--threads", "1")


def is_right(folder: Path) -> bool:
    return PROGRAM.is_right(compile_to_bytes(folder.parent / "model.mlir", (f"@{folder / 'flags.txt'}",)))


def test_the_result_is_right_and_says_what_plain_code_does(cli: Cli, ended: Ended) -> None:
    assert ended.code == 0, ended.err
    assert "note: repaired: the program has a value that one op reads in part" in ended.out
    assert "plain iree-compile's code is WRONG (" in ended.out
    assert "plain iree-compile\n" not in ended.out, "nothing is compared with plain code"
    program = json.loads((cli.folder / "tuned" / "summary.json").read_text())["program"]
    assert program["repair"]["forms"] == ["partial_read"]
    assert program["repair"]["wrong"]
    assert program["repair"]["plain_s"] > 0
    assert program["verdict"] == "right"
    assert is_right(cli.folder / "tuned")


def test_the_folder_is_replayed_edited_and_compiled(cli: Cli, ended: Ended) -> None:
    assert ended.code == 0, ended.err
    replayed = json.loads(cli("replay", "tuned", "model.mlir", "--json").out)
    assert replayed["verdict"] == "right"
    assert replayed["state"] == "as tuned"
    assert any(note.startswith("repaired: ") for note in replayed["notes"])
    (emitted,) = (d["value"] for d in json.loads(cli("inspect", "tuned", "--json").out)["program"]["decisions"])
    other = "data-tiling" if emitted == "O3" else "O3"
    library = cli.folder / "tuned" / "library.mlir"
    library.write_text(with_word(library.read_text(), VARIANT, emitted, other))
    edited = json.loads(cli("replay", "tuned", "model.mlir", "-o", "edited", "--json").out)
    assert (edited["verdict"], edited["state"]) == ("right", "decisions edited")
    assert json.loads(cli("compile", "model.mlir", "--tuned", "edited", "--json").out)["rewrite"] == "repaired"
    assert is_right(cli.folder / "edited")
