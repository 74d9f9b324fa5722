"""Whether a folder holds, honours edits and is refused when damaged."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from command_line import MODEL, Cli, Ended

from mlir_sched.replaying.replayed_folder import REPLAYED
from mlir_sched.tuned_folder.result import ProgramResult, TuneResult


def replayed(cli: Cli, folder: Path) -> tuple[int, dict[str, Any]]:
    """Replay a folder and return the exit code and the document."""
    ended = cli("replay", folder, "model.mlir", "--json")
    return ended.code, json.loads(ended.out)


def edit(folder: Path, old: str, new: str) -> None:
    """Replace a text in the folder's library, once."""
    library = folder / "library.mlir"
    assert old in library.read_text()
    library.write_text(library.read_text().replace(old, new, 1))


def decision_line(folder: Path, name: str) -> tuple[str, int]:
    """Return the start of the line that holds a decision's first number, and the number."""
    text = (folder / "library.mlir").read_text()
    start = text.index(f"%{name} = transform.param.constant ")
    line = text[start : text.index(" : i64", start)]
    return line, int(line.split()[-1])


def test_replay_says_whether_a_folder_holds(cli: Cli, copied: Path) -> None:
    code, document = replayed(cli, copied)
    (sequence,) = document["sequences"]
    assert (sequence["state"], sequence["applied"]) == ("as tuned", 1)
    assert sequence["timing"]["ratio"] > 0
    assert {*document["loading"]} == {"untuned", "tuned"}
    assert code == (0 if document["holds"] else 1)
    assert document["holds"] == (not sequence["problems"] and not document["problems"])


@pytest.mark.landing
def test_replay_honours_a_legal_edit(cli: Cli, copied: Path) -> None:
    line, value = decision_line(copied, "workgroup_0_0")
    other = 64 if value == 32 else 32
    edit(copied, line, line.removesuffix(str(value)) + str(other))
    _, document = replayed(cli, copied)
    (sequence,) = document["sequences"]
    if sequence["state"] != "refused":  # another decision may depend on this one
        assert sequence["state"] == "decisions edited"
        assert f"workgroup_0 {value} -> {other}" in sequence["note"]
        assert sequence["applied"] == 1


@pytest.mark.landing
def test_a_replayed_folder_states_what_was_measured_here(cli: Cli, copied: Path) -> None:
    flags, library = copied / "flags.txt", copied / "library.mlir"
    lines = [line for line in flags.read_text().splitlines() if "-target-cpu" not in line]
    flags.write_text("\n".join([*lines, "--iree-llvmcpu-target-cpu=x86-64-v2"]))
    before = library.read_text()
    text = re.sub(r'(mlir_sched.target = "llvm-cpu) [^"]*', r"\1 x86-64-v2", before)
    library.write_text(re.sub(r"iree-compiler 3\.13\.\d+", "iree-compiler 3.12.0", text))
    assert library.read_text() != text != before
    ended = cli("replay", "tuned", "model.mlir", "-o", "here")
    assert ended.code == 1
    assert "tuned/flags.txt is for the processor x86-64-v2, not " in ended.out
    assert "wrote here" in ended.out
    summary = json.loads((cli.folder / "here" / "summary.json").read_text())
    assert [[*summary], [*summary["program"]]] == [[*REPLAYED[TuneResult]], [*REPLAYED[ProgramResult]]]
    assert cli("compile", "model.mlir", "--tuned", "here", "--strict").code == 0
    assert cli("compile", "model.mlir", "--tuned", "tuned", "--strict").code == 1


def test_replay_refuses_an_illegal_edit(cli: Cli, copied: Path) -> None:
    line, value = decision_line(copied, "workgroup_0_0")
    edit(copied, line, line.removesuffix(str(value)) + "511")
    code, document = replayed(cli, copied)
    (sequence,) = document["sequences"]
    assert (code, sequence["state"]) == (1, "refused")
    assert "511" in sequence["note"]


@pytest.mark.landing
def test_replay_takes_other_edits_as_hand_written(cli: Cli, copied: Path) -> None:
    edit(copied, "    transform.apply_cse to %arg0 : !transform.any_op\n", "")
    _, document = replayed(cli, copied)
    (sequence,) = document["sequences"]
    assert sequence["state"] == "edited by hand"
    assert sequence["timing"] is not None or sequence["problems"]


@pytest.mark.landing
def test_replay_of_another_model_or_a_moved_folder_does_not_hold(tuned: tuple[Path, Ended], cli: Cli) -> None:
    shutil.copytree(tuned[0] / "tuned", cli.folder / "moved")
    (cli.folder / "model.mlir").write_text(MODEL.replace("256", "64"))
    code, document = replayed(cli, cli.folder / "moved")
    assert code == 1
    assert document["sequences"][0]["applied"] == 0
    assert any("the folder was moved" in problem for problem in document["problems"])


def test_replay_refuses_bad_input(cli: Cli, copied: Path) -> None:
    assert "no such folder" in cli.refused("replay", "nothing", "model.mlir")
    assert "not a tuned folder" in cli.refused("replay", ".", "model.mlir")
    assert "no such file" in cli.refused("replay", copied, "missing.mlir")
    summary = json.loads((copied / "summary.json").read_text())
    (copied / "summary.json").write_text(json.dumps(summary | {"target": "abacus"}))
    assert "unknown target 'abacus'" in cli.refused("replay", copied, "model.mlir")
    for field, value in {"threads": "two", "program": [], "parameters": [1], "dispatches": {}}.items():
        (copied / "summary.json").write_text(json.dumps(summary | {field: value}))
        assert f"summary.json is damaged: {field} is" in cli.refused("replay", copied, "model.mlir")
    (copied / "summary.json").write_text("{")
    assert "not JSON" in cli.refused("replay", copied, "model.mlir")


@pytest.mark.parametrize(
    "flag",
    [
        "--iree-llvmcpu-system-linker-path=/tmp/linker",
        "--iree-hal-dump-executable-files-to=/tmp/dump",
        "--iree-plugin=anything",
        "@more.txt",
        "--iree-preprocessing-pass-pipeline=builtin.module(iree-transform-dialect-interpreter"
        "{library-file-name={library}},canonicalize)",
        "--iree-preprocessing-pass-pipeline=builtin.module(iree-transform-dialect-interpreter"
        "{library-file-name=/tmp/another.mlir})",
        "--iree-codegen-transform-dialect-library=/tmp/another.mlir",
    ],
)
def test_replay_refuses_flags_that_tune_does_not_write(cli: Cli, copied: Path, flag: str) -> None:
    """They come first, so that the folder's own ones do not hide them."""
    flag = flag.replace("{library}", str(copied.resolve() / "library.mlir"))
    text = (copied / "flags.txt").read_text()
    (copied / "flags.txt").write_text(f"{flag}\n{text}")
    message = cli.refused("replay", copied, "model.mlir")
    assert f"flags.txt has {flag}, which tune does not write" in message


def test_replay_says_that_a_folder_is_code(cli: Cli) -> None:
    assert "do not replay what you do not trust" in " ".join(cli("replay", "--help").out.split())


def test_a_device_is_described_for_the_target_of_the_folder(cli: Cli, copied: Path) -> None:
    (copied.parent / "cpu.json").write_text("{}")
    ended = cli("replay", copied, "model.mlir", "--target-description", copied.parent / "cpu.json")
    assert ended.code == 2
    assert "the target llvm-cpu is this machine's CPU and has no devices; got llvm-cpu:" in " ".join(ended.err.split())


def test_replay_writes_over_no_result_of_a_search(tuned: tuple[Path, Ended], cli: Cli, copied: Path) -> None:
    report = (copied / "report.html").read_text()
    assert "tuned is the folder that is replayed" in cli.refused("replay", "tuned", "model.mlir", "-o", "tuned")
    shutil.copytree(tuned[0] / "tuned", cli.folder / "other")
    message = cli.refused("replay", "tuned", "model.mlir", "-o", "other")
    assert message == "error: other holds the result of a search with its report; choose another folder with -o"
    (cli.folder / "other" / "report.html").unlink()
    (cli.folder / "other" / "library.mlir").write_text("edited")
    message = cli.refused("replay", "tuned", "model.mlir", "-o", "other")
    assert message == "error: other/library.mlir was edited by hand; choose another folder with -o"
    assert (copied / "report.html").read_text() == report
