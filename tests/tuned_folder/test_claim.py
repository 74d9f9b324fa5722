"""A run replaces only what is known to be an earlier result of the same model, and says which file is in the way."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from mlir_sched.errors import UserError
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tuned_folder.claim import WRITTEN, Claim
from mlir_sched.tuned_folder.error_log import ErrorLog
from mlir_sched.tuned_folder.installation import EmittedFiles, install
from mlir_sched.tuned_folder.manifest import SAMPLE_BYTES, SAMPLES, ResultWriter, Source, model_digest
from mlir_sched.tuned_folder.names import FLAGS, INTERNAL_ERRORS, LIBRARY, MANIFEST, RESULT

CLAIM = Claim(Source("digest", "a.mlir", "llvm-cpu"))
SCRIPTS = EmittedFiles('module attributes {mlir_sched.emission = "aaaaaaaaaaaa"} {\n}\n', ("--level=1",))
NO_GAIN = EmittedFiles("", ("--level=1",))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder that holds a result with all of its files, and records."""
    put(tmp_path, SCRIPTS)
    writer = ResultWriter.of(tmp_path, CLAIM.source)
    for name in set(RESULT) - {path.name for path in tmp_path.iterdir()}:
        writer.write(name, b"shown")
    writer.finish()
    (tmp_path / "records.sqlite").write_text("records")
    return tmp_path


def put(folder: Path, files: EmittedFiles, claim: Claim = CLAIM) -> None:
    install(folder, claim, files, json.dumps({"emission": files.emission}))


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def assert_refused(folder: Path, claim: Claim, reason: str) -> None:
    """Require that a folder is refused at the start and at the installation, with a reason, and stays as it is."""
    before = contents(folder)
    with pytest.raises(UserError, match=reason):
        claim.require(folder)
    with pytest.raises(UserError, match=reason):
        put(folder, NO_GAIN, claim)
    assert contents(folder) == before


def test_the_same_model_is_tuned_again_without_a_word(folder: Path) -> None:
    for files in (SCRIPTS, NO_GAIN, SCRIPTS):
        put(folder, files)
    renamed = replace(CLAIM, source=replace(CLAIM.source, model_file="moved.mlir"))
    put(folder, SCRIPTS, renamed)


@pytest.mark.parametrize("name", RESULT)
def test_a_foreign_file_with_a_name_of_ours_is_refused_and_left_alone(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("foreign")
    assert_refused(tmp_path, CLAIM, rf"/{name} is not known to be written by mlir-sched; .* --replace")


def test_a_folder_with_a_name_of_ours_is_refused(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).mkdir()
    with pytest.raises(UserError, match=f"{LIBRARY} is not known to be written by mlir-sched"):
        CLAIM.require(tmp_path)


@pytest.mark.parametrize("name", RESULT)
def test_a_file_that_was_edited_by_hand_is_refused_and_left_alone(folder: Path, name: str) -> None:
    with (folder / name).open("a") as file:
        file.write("\n")
    assert_refused(folder, CLAIM, rf"/{name} was edited by hand; .* --replace")


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"model": "b", "model_file": "b.mlir"}, "holds the result of another model, a.mlir; .* --replace"),
        ({"model": "b"}, "holds the result of a.mlir as it was before the file or its weights changed"),
        ({"target": "cuda"}, "holds results for the target llvm-cpu, not cuda"),
    ],
)
def test_the_result_of_another_source_is_refused(folder: Path, other: dict[str, str], reason: str) -> None:
    assert_refused(folder, replace(CLAIM, source=replace(CLAIM.source, **other)), reason)


def test_a_damaged_manifest_is_refused_and_can_be_replaced(folder: Path) -> None:
    (folder / MANIFEST).write_text("{}")
    assert_refused(folder, CLAIM, f"{MANIFEST} is no manifest of mlir-sched, or is damaged; .* --replace")
    put(folder, SCRIPTS, replace(CLAIM, replace=True))
    CLAIM.require(folder)


def test_replacing_keeps_the_records_and_makes_the_folder_ours(folder: Path) -> None:
    other = Claim(Source("b", "b.mlir", "llvm-cpu"), replace=True)
    (folder / LIBRARY).write_text("edited")
    put(folder, NO_GAIN, other)
    assert sorted(contents(folder)) == [MANIFEST, "flags.txt", "records.sqlite", "summary.json"]
    assert (folder / "records.sqlite").read_text() == "records"
    replace(other, replace=False).require(folder)


def test_foreign_files_of_other_names_stay(folder: Path) -> None:
    (folder / "library.notes.mlir").write_text("mine")
    (folder / "model.mlir").write_text("mine")
    for files in (NO_GAIN, SCRIPTS):
        put(folder, files)
    assert (folder / "library.notes.mlir").read_text() == (folder / "model.mlir").read_text() == "mine"


def test_what_an_interrupted_run_left_is_no_hindrance(tmp_path: Path) -> None:
    for name in (".lock", "records.sqlite"):
        (tmp_path / name).write_text("1")
    ErrorLog(tmp_path).add("Traceback")
    CLAIM.require(tmp_path)
    CLAIM.require(tmp_path / "nothing")


def test_a_foreign_log_of_the_same_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / INTERNAL_ERRORS).write_text("of another program")
    assert_refused(tmp_path, CLAIM, f"{INTERNAL_ERRORS} was not written by mlir-sched")


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("link", [False, True])
def test_an_input_among_the_outputs_is_refused_even_where_all_may_be_replaced(
    tmp_path: Path, name: str, link: bool
) -> None:
    (tmp_path / "out").mkdir()
    given = tmp_path / "out" / name
    if link:
        given = tmp_path / "model.mlir"
        (tmp_path / "out" / name).symlink_to(given)
    for made in (False, True):
        if made:
            given.write_text("func.func @main()")
        with pytest.raises(UserError, match=rf"{given.name}: the run would write its own {name} in its place"):
            Claim(CLAIM.source, (given,), replace=True).require(tmp_path / "out")


def test_a_writer_that_is_killed_leaves_only_files_that_the_next_run_knows(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    real, left = os.replace, [0]

    def counted(*paths: Path) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise Killed
        real(*paths)

    monkeypatch.setattr(os, "replace", counted)
    for count in range(100):
        left[0] = count
        try:
            put(folder, EmittedFiles(SCRIPTS.library.replace("a" * 12, f"{count:012x}"), (f"--level={count}",)))
        except Killed:
            CLAIM.require(folder)
            continue
        break
    assert count > 5
    left[0] = 100
    (folder / FLAGS).write_text("edited")
    with pytest.raises(UserError, match="edited by hand"):
        CLAIM.require(folder)


def test_a_model_is_known_by_what_its_files_hold(tmp_path: Path) -> None:
    model, moved, weights = (tmp_path / name for name in ("model.mlir", "moved.mlir", "weights.irpa"))
    model.write_text("func.func @main()")
    moved.write_text("func.func @main()")
    weights.write_bytes(bytes(2 * SAMPLES * SAMPLE_BYTES))
    with_weights = [ParameterFile("model", str(weights))]
    assert model_digest(model, ()) == model_digest(moved, ())
    found = {model_digest(model, ()), model_digest(model, with_weights)}
    found.add(model_digest(model, [ParameterFile("other", str(weights))]))
    for position in (0, 2 * SAMPLES * SAMPLE_BYTES - 1):
        with weights.open("r+b") as file:
            file.seek(position)
            file.write(b"1")
        found.add(model_digest(model, with_weights))
    model.write_text("func.func @other()")
    assert len({*found, model_digest(model, ())}) == 6
