"""What every command does: help, errors, exit codes."""

import json

import pytest
from command_line import Cli

from mlir_sched.cli.tune import failure_lines
from mlir_sched.version import __version__


def test_version_and_help_are_printed(cli: Cli) -> None:
    assert cli("--version").out == f"mlir-sched {__version__}\n"
    ended = cli("--help")
    assert ended.code == 0
    assert all(name in ended.out for name in ("tune", "inspect", "replay", "doctor"))


@pytest.mark.parametrize("arguments", [(), ("frobnicate",), ("tune",), ("tune", "model.mlir", "--trials", "many")])
def test_a_wrong_command_line_ends_with_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err


def test_errors_are_documents_when_json_is_asked_for(cli: Cli) -> None:
    ended = cli("tune", "missing.mlir", "--json")
    assert ended.code == 2
    assert json.loads(ended.out) == {"error": "missing.mlir: no such file", "exit_code": 2}
    assert json.loads(cli("tune", "model.mlir", "--json", "--no-such-option").out)["exit_code"] == 2


def test_an_error_of_ours_is_one_line_and_a_log(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlir_sched.replaying.inspection.read_tuned_folder", lambda _: 1 / 0)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(cli.folder))
    ended = cli("inspect", cli.folder)
    assert ended.code == 1
    assert ended.message.startswith("internal error: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in ended.err
    assert "Traceback" in (cli.folder / "mlir-sched-error.log").read_text()


def test_a_mistake_of_ours_is_shown_apart_from_candidates_that_fail() -> None:
    assert failure_lines({}) == []
    assert failure_lines({"run_memory": 2}) == ["failed candidates: run_memory 2"]
    ours = failure_lines({"internal_error": 1, "run_memory": 2})
    assert ours[0] == "failed candidates: run_memory 2, internal_error 1"
    assert "a mistake of mlir-sched" in ours[1]
