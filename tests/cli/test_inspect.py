"""What inspect shows and refuses."""

import json
from pathlib import Path

import pytest
from command_line import TRIALS, Cli, Ended
from folders import ROOT


def test_inspect_shows_decisions_of_a_folder_a_library_and_a_script(tuned: tuple[Path, Ended], cli: Cli) -> None:
    folder, ended = tuned
    (dispatch,) = json.loads(ended.out)["dispatches"]
    decided = json.loads(ended.out)["program"]["decisions"]
    assert list(decided) == ["variant"]
    for path in (folder / "tuned", folder / "tuned" / "library.mlir"):
        document = json.loads(cli("inspect", path, "--json").out)
        (sequence,) = document["sequences"]
        assert {d["name"]: d["value"] for d in document["program"]["decisions"]} == decided
        assert sequence["symbol"] == dispatch["symbol"]
        assert {d["name"]: d["value"] for d in sequence["trace"]["decisions"]} == dispatch["decisions"]
        assert sequence["provenance"]["task"] == dispatch["task_key"]
        assert dispatch["symbol"] in cli("inspect", path).out
        assert cli("inspect", path, "--script").out == (folder / "tuned" / "library.mlir").read_text()


def test_inspect_shows_what_a_store_holds(tuned: tuple[Path, Ended], cli: Cli) -> None:
    folder, _ = tuned
    store = folder / "tuned" / "records.sqlite"
    document = json.loads(cli("inspect", store, "--json").out)
    (result,) = document["results"]
    assert (document["tasks"], result["records"]) == (1, TRIALS)
    assert result["best"]["outcome"]["timing"]["ratio"] > 0
    shown = cli("inspect", store).out
    assert f"1 task, {TRIALS} records" in shown
    assert f"target: {result['target']}" in shown
    assert "llvm-cpu" in result["target"]
    (cli.folder / "best.mlir").write_text(cli("inspect", store, "--script").out)
    assert "@strategy" in cli("inspect", cli.folder / "best.mlir").out


def test_inspect_names_scripts_that_were_written_by_hand(cli: Cli) -> None:
    tuned = ROOT / "examples" / "cmake_project" / "tuned"
    for path in (tuned, tuned / "library.mlir"):
        assert "written by hand, without decisions that mlir-sched knows: strategy_0" in cli("inspect", path).out
        assert json.loads(cli("inspect", path, "--json").out)["by_hand"] == ["strategy_0"]


@pytest.mark.parametrize(
    ("path", "expected"), [("nothing", "no such folder"), (".", "no flags.txt"), ("model.mlir", "no sequence")]
)
def test_inspect_refuses_what_it_does_not_know(cli: Cli, path: str, expected: str) -> None:
    assert expected in cli.refused("inspect", path)


def test_inspect_shows_what_a_users_store_holds(
    tuned: tuple[Path, Ended], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tuned[0] / "user.sqlite"
    monkeypatch.setenv("MLIR_SCHED_STORE", str(path))
    document = json.loads(cli("inspect", "--user-store", "--json").out)
    assert (document["path"], document["bytes"]) == (str(path), path.stat().st_size)
    assert (document["tasks"], document["records"]) == (1, TRIALS + 1), "with the untuned code"
    (ops,), (machine,) = document["ops"], document["machines"]
    assert ops["name"].endswith(", f32")
    assert machine["name"].endswith(", 1 thread")
    assert (ops["tasks"], ops["records"]) == (machine["tasks"], machine["records"]) == (1, TRIALS + 1)
    shown = cli("inspect", "--user-store").out
    assert ops["name"] in shown
    assert f"{path}: " in shown
    assert f" 1 task, {TRIALS + 1} records" in shown


def test_inspect_says_that_there_is_no_users_store(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "MLIR_SCHED_STORE is off" in cli.refused("inspect", "--user-store")
    monkeypatch.setenv("MLIR_SCHED_STORE", str(cli.folder / "user.sqlite"))
    assert "user.sqlite does not exist" in cli.refused("inspect", "--user-store")
    assert "or --user-store" in cli.refused("inspect")
    for more in ("model.mlir", "--script"):
        assert "takes neither a path nor --script" in cli.refused("inspect", "--user-store", more)
