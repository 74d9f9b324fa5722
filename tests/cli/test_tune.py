"""What tune makes, and what is left of an interrupted run."""

import json
import shutil
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest
from command_line import COMMAND, MODEL, OPTIONS, TRIALS, Cli, Ended, run
from stored_records import everything_in

from mlir_sched import pipeline
from mlir_sched.database import RecordStore
from mlir_sched.database.record import Record, StoredTask
from mlir_sched.errors import UserError


def test_json_is_one_document_and_progress_goes_to_stderr(tuned: tuple[Path, Ended]) -> None:
    folder, ended = tuned
    assert ended.code == 0, ended.err
    document = json.loads(ended.out)
    assert document == json.loads((folder / "tuned" / "summary.json").read_text())
    assert document["trials"] == TRIALS
    assert document["program"]["verdict"] == "right"
    assert all(document["program"]["loading"][which]["seconds"] > 0 for which in ("untuned", "tuned"))
    assert document["program"]["weights"] == {"untuned_bytes": 0, "tuned_bytes": 0}
    assert list(document["phases"]) == ["variants", "untuned dispatches", "search", "finalists", "emission"]
    assert document["seconds"] - 3 < sum(document["phases"].values()) <= document["seconds"] + 3
    assert f"{TRIALS}/{TRIALS} trials" in ended.err
    assert "\x1b" not in ended.err


@pytest.mark.promise
def test_a_bound_of_weights_reaches_the_choice_of_variants(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[object]()

    def build_variants(*_: object, **options: object) -> NoReturn:
        asked.append(options["most_weights"])
        raise UserError("nothing is built")

    monkeypatch.setattr(pipeline, "build_variants", build_variants)
    for bound in ((), ("--max-weights", "1.25")):
        assert "nothing is built" in cli.refused("tune", "model.mlir", *bound)
    assert asked == [None, 1.25]


@pytest.mark.landing
def test_a_search_ends_once_too_little_is_expected_of_it_and_again_where_it_ended(cli: Cli) -> None:
    options = ("--trials", "5000", "--stop-below", "60%", "--threads", "1", "--scheduler", "round-robin", "--json")
    first, again = (cli("tune", "model.mlir", *options) for _ in range(2))
    assert (first.code, again.code) == (0, 0), first.err + again.err
    found, repeated = json.loads(first.out), json.loads(again.out)
    assert "the next minute was expected to save " in found["ended_early"]
    assert found["ended_early"].endswith("less than 60%")
    assert 8 < found["trials"] < 5000
    assert found["program"]["verdict"] == "right"
    assert (repeated["trials"], repeated["evaluated"]) == (found["trials"], 0)
    assert repeated["ended_early"] == found["ended_early"]
    assert found["ended_early"].replace("'", "&#x27;") in (cli.folder / "tuned" / "report.html").read_text()


def test_the_summary_says_why_a_script_won_and_how_the_program_became_faster(tuned: tuple[Path, Ended]) -> None:
    document = json.loads(tuned[1].out)
    (dispatch,) = document["dispatches"]
    known = dispatch["ablation"]
    assert {worth["name"]: worth["value"] for worth in known["decisions"]} == dispatch["decisions"]
    assert all(worth["measured"] + worth["failed"] < TRIALS for worth in known["decisions"])
    estimates = document["curves"][0]["estimates"]
    assert estimates[0]["trials"] == 0
    assert sum(curve["estimates"][-1]["trials"] for curve in document["curves"]) == TRIALS
    assert 0 < estimates[-1]["run_s"] < document["run_seconds"]
    assert 0 < estimates[-1]["program_s"] < estimates[0]["program_s"]
    assert "<details><summary><code>" in (tuned[0] / "tuned" / "report.html").read_text()


def test_the_folder_holds_what_the_documentation_says(tuned: tuple[Path, Ended]) -> None:
    folder, _ = tuned
    files = {path.name for path in (folder / "tuned").iterdir()}
    assert {"flags.txt", "library.mlir", "summary.json", "curve.png", "report.html", "records.sqlite"} <= files
    page = (folder / "tuned" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page
    variants = json.loads((folder / "tuned" / "summary.json").read_text())["program"]["variants"]
    assert page.count('style="width:') == len(variants) + 1, "a bar per untuned variant, and one for the tuned program"
    assert (folder / "tuned" / "curve.png").read_bytes().startswith(b"\x89PNG")


def test_what_a_run_measures_is_in_the_users_store_too(tuned: tuple[Path, Ended]) -> None:
    folder, ended = tuned
    assert everything_in(folder / "user.sqlite") == everything_in(folder / "tuned" / "records.sqlite")
    assert not [note for note in json.loads(ended.out)["notes"] if "store" in note]
    with RecordStore.open(folder / "user.sqlite", read_only=True) as users:
        (program,) = users.programs()
    with RecordStore.open(folder / "tuned" / "records.sqlite", read_only=True) as own:
        assert own.programs() == (program,)
    assert program.features
    assert program.variants


@pytest.mark.landing
def test_what_a_users_store_holds_changes_no_candidate(tuned: tuple[Path, Ended], tmp_path: Path) -> None:
    shutil.copytree(tuned[0], tmp_path, dirs_exist_ok=True)
    ended = run(tmp_path, "tune", "model.mlir", *OPTIONS, "-o", "again", "--user-store", "user.sqlite")
    assert ended.returncode == 0, ended.stderr
    (tasks, records), (same_tasks, again) = (
        everything_in(tmp_path / name / "records.sqlite") for name in ("tuned", "again")
    )
    assert same_tasks == tasks
    assert list(again) == list(records), "with an empty store and with a filled one"
    assert again != records, "they were measured"
    assert everything_in(tmp_path / "user.sqlite") == (tasks, records), "what was measured first stays"


@pytest.mark.landing
def test_two_runs_at_once_lose_nothing_of_what_a_users_store_has_and_gets(tmp_path: Path) -> None:
    """One searches and one does not; each begins from what the store has by then."""
    asked = {"one": ("--trials", "4", "--transfer", "auto"), "other": ("--trials", "0")}
    runs = []
    for name, options in asked.items():
        (tmp_path / f"{name}.mlir").write_text(MODEL.replace("128x256", "64x256" if name == "one" else "96x256"))
        further = ("-o", name, "--threads", "1", "--user-store", "user.sqlite", "--json")
        command = [*COMMAND, "tune", f"{name}.mlir", *options, *further]
        runs.append(subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    tasks, records = dict[str, StoredTask](), dict[tuple[object, ...], Record]()
    try:
        printed = [each.communicate(timeout=280) for each in runs]
    finally:
        for each in runs:
            each.kill()
    for name, run_, (out, err) in zip(asked, runs, printed, strict=True):
        assert run_.returncode == 0, err
        summary = json.loads(out)
        assert summary["program"]["verdict"] == "right"
        assert not [note for note in summary["notes"] if "store" in note]
        own_tasks, own = everything_in(tmp_path / name / "records.sqlite")
        assert len(own) == summary["trials"] + 1
        tasks |= own_tasks
        records |= own
    assert everything_in(tmp_path / "user.sqlite") == (tasks, records)


def test_ctrl_c_keeps_everything_and_emits_the_best_so_far(tuned: tuple[Path, Ended], tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(tuned[0], folder)
    ended = interrupted(folder, signals=1)
    assert ended.code == 130, ended.err
    assert "Traceback" not in ended.err
    summary = json.loads((folder / "tuned" / "summary.json").read_text())
    assert summary["interrupted"]
    assert summary["trials"] - summary["evaluated"] >= TRIALS  # those of the first run were not measured again
    assert summary["run_seconds"] > summary["seconds"] + 1, "the first run's seconds count"
    assert records_in(folder) == records_in(tuned[0]) + summary["evaluated"]
    own, users = (everything_in(folder / name)[1] for name in ("tuned/records.sqlite", "user.sqlite"))
    assert users.items() <= own.items()
    assert len(users) > records_in(tuned[0]), "whole rounds are in the user's store, too"
    assert f"interrupted; best so far: {summary['trials']} trials ({summary['evaluated']} measured now)" in ended.out
    assert "main_dispatch_0_softmax_128x256xf32" in ended.out
    assert f"iree-compile @{folder.resolve() / 'tuned'}/flags.txt model.mlir" in ended.out


@pytest.mark.landing
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
        [*COMMAND, "tune", "model.mlir", "--minutes", "10", "--threads", "1", "--user-store", "user.sqlite"],
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
    return len(everything_in(folder / "tuned" / "records.sqlite")[1])


SORT = """
func.func @main(%x: tensor<4x256xf32>) -> tensor<4x256xf32> {
  %sorted = iree_linalg_ext.sort dimension(1) outs(%x : tensor<4x256xf32>) {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    iree_linalg_ext.yield %less : i1
  } -> tensor<4x256xf32>
  return %sorted : tensor<4x256xf32>
}
"""


@pytest.mark.landing
@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        (SORT, ["it sorts (iree_linalg_ext.sort), for which there is no transform module"]),
        ("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }", []),
    ],
    ids=("sort", "no dispatch"),
)
def test_a_program_in_which_nothing_can_have_a_script_is_no_error_and_its_folder_is_written(
    cli: Cli, text: str, reasons: list[str]
) -> None:
    (cli.folder / "plain.mlir").write_text(text)
    ended = cli("tune", "plain.mlir", "--trials", "64", "--threads", "1", "--json")
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    assert [dispatch["note"] for dispatch in result["dispatches"]] == reasons
    assert (result["trials"], result["program"]["verdict"]) == (0, "right")
    assert "nothing to schedule" in result["notes"][0]
    assert (cli.folder / "tuned" / "flags.txt").exists()
    assert "nothing to schedule" in (cli.folder / "tuned" / "report.html").read_text()
    assert "numbers checked" in cli("replay", "tuned", "plain.mlir").out  # a gain of nanoseconds may not hold


def uses(store: Path) -> dict[str, int]:
    """Return the order of the last uses of a store's tasks, by key."""
    with closing(sqlite3.connect(store)) as connection:
        return dict(connection.execute("SELECT key, used FROM tasks"))


@pytest.mark.landing
def test_a_run_begins_from_what_another_run_left_in_the_users_store(tuned: tuple[Path, Ended], tmp_path: Path) -> None:
    shutil.copyfile(tuned[0] / "user.sqlite", tmp_path / "user.sqlite")
    before = uses(tmp_path / "user.sqlite")
    (tmp_path / "model.mlir").write_text(MODEL.replace("128x256", "96x320"))
    options = ("--user-store", "user.sqlite", "--transfer", "auto")
    ended = run(tmp_path, "tune", "model.mlir", *OPTIONS, *options)
    assert ended.returncode == 0, ended.stderr
    words = "1 of 1 dispatches begin from what "
    assert words in ended.stdout
    summary = json.loads((tmp_path / "tuned" / "summary.json").read_text())["transfer"]
    assert "your store" in [source["place"] for source in summary["sources"]]
    assert summary["words"].startswith(words)
    shown = run(tmp_path, "inspect", "tuned").stdout
    assert summary["words"] in shown
    assert "  your store: " in shown
    after = uses(tmp_path / "user.sqlite")
    assert any(after[key] > max(before.values()) for key in before), "a task that others begin from is used"
