"""The command line: what it prints, what it writes, how it ends."""

import functools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mlir_sched import doctor
from mlir_sched.cli import main
from mlir_sched.cli.tune import failure_lines
from mlir_sched.compiler import version as compiler_version_module
from mlir_sched.database import RecordStore
from mlir_sched.space.user_modules import load_modules
from mlir_sched.version import __version__

TRIALS = 6
MODEL = """
func.func @main(%x: tensor<128x256xf32>) -> tensor<128x256xf32> {
  %empty = tensor.empty() : tensor<128x256xf32>
  %softmax = linalg.softmax dimension(1) ins(%x : tensor<128x256xf32>)
                                         outs(%empty : tensor<128x256xf32>) -> tensor<128x256xf32>
  return %softmax : tensor<128x256xf32>
}
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """What it said on stderr, without the progress."""
        lines = self.err.splitlines()
        starts = [i for i, line in enumerate(lines) if line.startswith(("error: ", "internal error: ", "interrupted"))]
        return "\n".join(lines[starts[0] :]) if starts else ""


class Cli:
    """Runs commands in this process, in a folder of their own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self._capsys = folder, capsys

    def __call__(self, *arguments: str | Path) -> Ended:
        self._capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Ended(code, captured.out, captured.err)

    def refused(self, *arguments: str | Path) -> str:
        """Run a command that must be refused for the user's fault and return its message."""
        ended = self(*arguments)
        assert ended.code == 2, ended.err
        assert "Traceback" not in ended.err
        assert ended.out == ""
        assert 1 <= len(ended.message.splitlines()) <= 2, ended.err
        return ended.message


@pytest.fixture
def cli(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.mlir").write_text(MODEL)
    return Cli(tmp_path, capsys)


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ended]:
    """A folder with model.mlir tuned into tuned/, and how the command ended that did it."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "model.mlir").write_text(MODEL)
    done = subprocess.run(
        [*COMMAND, "tune", "model.mlir", "--trials", str(TRIALS), "--json"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return folder, Ended(done.returncode, done.stdout, done.stderr)


COMMAND = (sys.executable, "-m", "mlir_sched.cli")


# What every command does


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


# What tune refuses


def test_a_folder_that_iree_cannot_be_told_is_refused_at_once(cli: Cli) -> None:
    for name in ("a{b", "user@host"):
        assert "choose another folder" in cli.refused("tune", "model.mlir", "-o", name)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("empty.mlir", "", "the file is empty"),
        ("text.mlir", "hello, world", "text.mlir:1:"),
        ("type.mlir", "func.func @f(%a: i32) -> i64 { return %a : i32 }", "type.mlir:1:"),
        ("copy.mlir", "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }", "no dispatch"),
        (
            "dynamic.mlir",
            "func.func @f(%a: tensor<4x?xf32>) -> tensor<4x?xf32> "
            "{ %0 = arith.addf %a, %a : tensor<4x?xf32> return %0 : tensor<4x?xf32> }",
            "dimension 1 of argument 0 of @f",
        ),
        (
            "zeros.mlir",
            "func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> "
            "{ %0 = arith.subf %a, %a : tensor<4xf32> return %0 : tensor<4xf32> }",
            "nothing is tuned, as its numbers cannot be verified: output 0 is not to be told from zeros",
        ),
    ],
)
def test_a_file_that_is_no_tunable_program_is_refused(cli: Cli, name: str, text: str, expected: str) -> None:
    (cli.folder / name).write_text(text)
    assert expected in cli.refused("tune", name)


def test_a_missing_file_and_a_folder_are_refused_and_leave_nothing(cli: Cli) -> None:
    assert cli.refused("tune", "missing.mlir") == "error: missing.mlir: no such file"
    assert cli.refused("tune", ".") == "error: .: not a file"
    assert [path.name for path in cli.folder.iterdir()] == ["model.mlir"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--trials", "0"), "trials must be above 0"),
        (("--trials", "-3"), "trials must be above 0"),
        (("--minutes", "0"), "minutes must be above 0"),
        (("--minutes", "nan"), "minutes must be above 0"),
        (("--trials", "5", "--minutes", "1"), "not both"),
        (("--strategy", "guess"), "unknown strategy 'guess'"),
        (("--target", "abacus"), "unknown target 'abacus'; known targets: llvm-cpu"),
        (("--threads", "0"), "threads must be from 1"),
        (("--device", "local-sync", "--threads", "2"), "the device is local-task, or is left to the search"),
        (("--device", "local-task"), "the device local-task needs several threads, but threads is 1"),
        (("--output", "model.mlir/tuned"), "cannot write the output folder"),
        (("--store", "model.mlir"), "not a record store"),
        (("--module", "no_such_module:Module"), "No module named 'no_such_module'"),
        (("--module", "json:loads"), "json:loads cannot be loaded"),
        (("--module", "json"), "must be named as package.module:Class"),
    ],
)
def test_a_wrong_option_is_refused(cli: Cli, arguments: tuple[str, ...], expected: str) -> None:
    assert expected in cli.refused("tune", "model.mlir", *arguments)


def test_another_release_of_the_compiler_is_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler_version_module, "version", lambda _: "3.99.0")
    assert "IREE 3.13.x is needed, 3.99.0 is installed" in cli.refused("tune", "model.mlir")
    ended = cli("doctor", "--json")
    assert ended.code == 1
    assert not json.loads(ended.out)["can_tune"]


def test_a_store_that_cannot_be_used_is_refused_and_left_alone(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordStore, "open", functools.partial(RecordStore.open, timeout_s=0.2))
    RecordStore.open(cli.folder / "newer.db").close()
    with sqlite3.connect(cli.folder / "newer.db") as connection:
        connection.execute("UPDATE mlir_sched_schema SET version = 999")
    damaged = b"SQLite format 3\0" + bytes(range(256)) * 16
    (cli.folder / "damaged.db").write_bytes(damaged)
    RecordStore.open(cli.folder / "locked.db").close()
    lock = sqlite3.connect(cli.folder / "locked.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    assert "999" in cli.refused("tune", "model.mlir", "--store", "newer.db")
    assert "damaged" in cli.refused("tune", "model.mlir", "--store", "damaged.db")
    assert "another process holds it" in cli.refused("tune", "model.mlir", "--store", "locked.db")
    assert (cli.folder / "damaged.db").read_bytes() == damaged
    lock.close()


def test_user_modules_that_raise_are_named_with_their_line(cli: Cli) -> None:
    (cli.folder / "raises_at_import.py").write_text("raise RuntimeError('no luck')\n")
    (cli.folder / "raises_later.py").write_text(
        textwrap.dedent("""
            from mlir_sched import ScheduleModule, TransformModule

            class InExtend(TransformModule):
                name = "in_extend"
                def extend(self, sketch, op, dispatch, target):
                    raise RuntimeError("no extension")

            class InSchedule(ScheduleModule):
                name = "in_schedule"
                def match(self, op, dispatch, target):
                    return op if op is dispatch.root else None
                def schedule(self, s, found):
                    raise RuntimeError("no schedule")
        """)
    )
    message = cli.refused("tune", "model.mlir", "--module", "raises_at_import:Module")
    assert "RuntimeError: no luck" in message
    assert "raises_at_import.py:1" in message
    assert "no extension" in cli.refused("tune", "model.mlir", "--module", "raises_later:InExtend")
    message = cli.refused("tune", "model.mlir", "--module", "raises_later:InSchedule", "--trials", "4")
    assert "'in_schedule' raised RuntimeError: no schedule" in message
    with RecordStore.open(cli.folder / "tuned" / "records.sqlite", read_only=True) as store:
        assert [store.contexts(task.key) for task in store.tasks()] != [()]  # the untuned timing is kept


def test_what_lies_in_the_working_directory_shadows_nothing_for_user_modules(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    (cli.folder / "wave.py").write_text("raise ImportError('planted')\n")
    (cli.folder / "found_here.py").write_text(
        "import wave\nfrom mlir_sched.transform_scripts.llvm_cpu.reduction import Reduction\n"
    )
    (module,) = load_modules(["found_here:Reduction"])
    assert module.name == "reduction"


# What tune makes


def test_json_is_one_document_and_progress_goes_to_stderr(tuned: tuple[Path, Ended]) -> None:
    folder, ended = tuned
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert document == json.loads((folder / "tuned" / "summary.json").read_text())
    assert document["trials"] == TRIALS
    assert document["program"]["verified"]
    assert f"{TRIALS}/{TRIALS} trials" in ended.err
    assert "\x1b" not in ended.err


def test_the_folder_holds_what_the_documentation_says(tuned: tuple[Path, Ended]) -> None:
    folder, _ = tuned
    files = {path.name for path in (folder / "tuned").iterdir()}
    assert {"flags.txt", "library.mlir", "summary.json", "curve.png", "report.html", "records.sqlite"} <= files
    page = (folder / "tuned" / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert "http" not in page
    assert (folder / "tuned" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_keeps_everything_and_emits_the_best_so_far(tuned: tuple[Path, Ended], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tuned[0], folder)
    ended = interrupted(folder, signals=1)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    summary = json.loads((folder / "tuned" / "summary.json").read_text())
    assert summary["interrupted"]
    assert summary["trials"] - summary["measured"] >= TRIALS  # those of the first run were not measured again
    assert summary["run_seconds"] > summary["seconds"] + 1, "the first run's seconds count"
    assert records_in(folder) == records_in(tuned[0]) + summary["measured"]
    assert f"interrupted; best so far: {summary['trials']} trials ({summary['measured']} measured now)" in ended.out
    assert "main_dispatch_0_softmax_128x256xf32" in ended.out
    assert f"iree-compile @{folder.resolve() / 'tuned'}/flags.txt model.mlir" in ended.out


def test_a_second_ctrl_c_ends_at_once(tuned: tuple[Path, Ended], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tuned[0], folder)
    start = time.monotonic()
    result = ("flags.txt", "library.mlir", "summary.json")
    before = [(folder / "tuned" / name).read_bytes() for name in result]
    ended = interrupted(folder, signals=2)
    assert [(folder / "tuned" / name).read_bytes() for name in result] == before
    assert (ended.code, ended.message) == (130, "interrupted; what was measured is in the record store")
    assert "Traceback" not in ended.err
    assert time.monotonic() - start < 60
    assert records_in(folder) >= records_in(tuned[0])


def interrupted(folder: Path, signals: int) -> Ended:
    """Start a long run, interrupt it once or twice after its first round, and return how it ended."""
    process = subprocess.Popen(
        [*COMMAND, "tune", "model.mlir", "--minutes", "10"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    seen = []
    for line in process.stderr:
        seen.append(line)
        if line.startswith("tuning") and " trials, " in line:
            break
    for _ in range(signals):
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, "".join(seen) + err)


def records_in(folder: Path) -> int:
    """Return the number of records in the folder's store."""
    with RecordStore.open(folder / "tuned" / "records.sqlite", read_only=True) as store:
        return sum(len(store.records(t.key, context)) for t in store.tasks() for context in store.contexts(t.key))


# inspect


def test_inspect_shows_decisions_of_a_folder_a_library_and_a_script(tuned: tuple[Path, Ended], cli: Cli) -> None:
    folder, ended = tuned
    (dispatch,) = json.loads(ended.out)["dispatches"]
    for path in (folder / "tuned", folder / "tuned" / "library.mlir"):
        document = json.loads(cli("inspect", path, "--json").out)
        (strategy,) = document["strategies"]
        assert strategy["symbol"] == dispatch["symbol"]
        assert {d["name"]: d["value"] for d in strategy["trace"]["decisions"]} == dispatch["decisions"]
        assert strategy["provenance"]["task"] == dispatch["task_key"]
        assert dispatch["symbol"] in cli("inspect", path).out
        assert cli("inspect", path, "--script").out == (folder / "tuned" / "library.mlir").read_text()


def test_inspect_shows_what_a_store_holds(tuned: tuple[Path, Ended], cli: Cli) -> None:
    folder, _ = tuned
    store = folder / "tuned" / "records.sqlite"
    document = json.loads(cli("inspect", store, "--json").out)
    (result,) = document["results"]
    assert (document["tasks"], result["records"]) == (1, TRIALS)
    assert result["best"]["outcome"]["timing"]["ratio"] > 0
    assert f"1 tasks, {TRIALS} records" in cli("inspect", store).out
    (cli.folder / "best.mlir").write_text(cli("inspect", store, "--script").out)
    assert "@strategy" in cli("inspect", cli.folder / "best.mlir").out


@pytest.mark.parametrize(
    ("path", "expected"), [("nothing", "no such folder"), (".", "no flags.txt"), ("model.mlir", "no strategy")]
)
def test_inspect_refuses_what_it_does_not_know(cli: Cli, path: str, expected: str) -> None:
    assert expected in cli.refused("inspect", path)


# replay


@pytest.fixture
def copied(tuned: tuple[Path, Ended], cli: Cli) -> Path:
    """A copy of the tuned folder whose flags name the copy's library."""
    source, copy = tuned[0] / "tuned", cli.folder / "tuned"
    shutil.copytree(source, copy)
    flags = (copy / "flags.txt").read_text().replace(str(source.resolve()), str(copy.resolve()))
    (copy / "flags.txt").write_text(flags)
    return copy


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
    (strategy,) = document["strategies"]
    assert (strategy["state"], strategy["applied"]) == ("as tuned", 1)
    assert strategy["timing"]["ratio"] > 0
    assert code == (0 if document["holds"] else 1)
    assert document["holds"] == (not strategy["problems"] and not document["problems"])


def test_replay_honours_a_legal_edit(cli: Cli, copied: Path) -> None:
    line, value = decision_line(copied, "workgroup_0_0")
    other = 64 if value == 32 else 32
    edit(copied, line, line.removesuffix(str(value)) + str(other))
    _, document = replayed(cli, copied)
    (strategy,) = document["strategies"]
    if strategy["state"] != "refused":  # another decision may depend on this one
        assert strategy["state"] == "decisions edited"
        assert f"workgroup_0 {value} -> {other}" in strategy["note"]
        assert strategy["applied"] == 1


def test_replay_refuses_an_illegal_edit(cli: Cli, copied: Path) -> None:
    line, value = decision_line(copied, "workgroup_0_0")
    edit(copied, line, line.removesuffix(str(value)) + "511")
    code, document = replayed(cli, copied)
    (strategy,) = document["strategies"]
    assert (code, strategy["state"]) == (1, "refused")
    assert "511" in strategy["note"]


def test_replay_takes_other_edits_as_hand_written(cli: Cli, copied: Path) -> None:
    edit(copied, "    transform.apply_cse to %arg0 : !transform.any_op\n", "")
    _, document = replayed(cli, copied)
    (strategy,) = document["strategies"]
    assert strategy["state"] == "edited by hand"
    assert strategy["timing"] is not None or strategy["problems"]


def test_replay_of_another_model_or_a_moved_folder_does_not_hold(tuned: tuple[Path, Ended], cli: Cli) -> None:
    shutil.copytree(tuned[0] / "tuned", cli.folder / "moved")
    (cli.folder / "model.mlir").write_text(MODEL.replace("256", "64"))
    code, document = replayed(cli, cli.folder / "moved")
    assert code == 1
    assert document["strategies"][0]["applied"] == 0
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


# doctor


def test_doctor_says_that_one_core_shows_no_races(monkeypatch: pytest.MonkeyPatch) -> None:
    for cores, expected in ((1, True), (2, False)):
        monkeypatch.setattr(doctor, "available_cpus", lambda cores=cores: cores)
        found = next(finding for finding in doctor._machine() if finding.name == "cores")
        assert ("races between threads are not looked for" in found.advice) is expected


def test_doctor_shows_versions_target_and_noise(cli: Cli) -> None:
    ended = cli("doctor", "--json")
    assert ended.code == 0
    found = {finding["name"]: finding for finding in json.loads(ended.out)["findings"]}
    expected = {"iree compiler", "iree runtime", "llvm-cpu: processor", "llvm-cpu: CPU features used", "cores"}
    assert expected | {"timing noise", "memory"} <= set(found)
    assert any(name.startswith(("vulkan: ", "target vulkan")) for name in found)
    assert str(len(os.sched_getaffinity(0))) in found["cores"]["value"]
