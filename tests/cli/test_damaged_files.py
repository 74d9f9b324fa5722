"""Damaged files of every kind: commands work, or end with an exit code and a line, and lose nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import MODEL, Cli
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir

from benchmarks.fuzz.damage import damaged
from benchmarks.fuzz.ending import complaint, contents, lost, message_of

READ = {"flags.txt": 40, "library.mlir": 40, "summary.json": 40, ".manifest.json": 40, "records.sqlite": 12}
"""The files of a tuned folder that commands read, and how often each is damaged; a store takes longest to be read."""


@pytest.mark.sweep("landing")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", READ)
def test_a_folder_with_a_damaged_file_is_inspected_or_refused_and_stays_as_it_is(
    cli: Cli, copied: Path, name: str
) -> None:
    whole = (copied / name).read_bytes()
    inspected = copied / name if name == "records.sqlite" else copied
    for seed in range(READ[name]):
        (copied / name).write_bytes(damaged(whole, 17 + seed))
        before = contents(copied)
        ended = cli("inspect", inspected)
        assert complaint(ended.code, ended.err) == "", (seed, ended.err)
        assert lost(before, contents(copied)) == "", seed


@pytest.mark.sweep("landing")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", ["flags.txt", "library.mlir", "summary.json", ".manifest.json"])
def test_a_model_is_compiled_with_a_damaged_folder_or_refused(cli: Cli, copied: Path, name: str) -> None:
    whole = (copied / name).read_bytes()
    for seed in (1, 4):
        (copied / name).write_bytes(damaged(whole, seed))
        before = contents(copied)
        ended = cli("compile", "model.mlir", "--tuned", copied, "-o", "model.vmfb")
        assert complaint(ended.code, ended.err) == "", (seed, ended.err)
        assert lost(before, contents(copied)) == "", seed
        assert (cli.folder / "model.vmfb").exists() == (ended.code == 0)
        (cli.folder / "model.vmfb").unlink(missing_ok=True)


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.timeout(120)
@pytest.mark.parametrize("form", ["text", "bytecode"])
def test_a_model_that_is_cut_off_is_refused_and_nothing_is_lost(cli: Cli, form: str) -> None:
    path = cli.folder / "cut.mlir"
    if form == "text":
        path.write_text(MODEL)
    else:
        with ir.Context(), ir.Location.unknown(), path.open("wb") as file:
            ir.Module.parse(MODEL).operation.write_bytecode(file)
    whole = path.read_bytes()
    for part in (3, 7):
        path.write_bytes(whole[: len(whole) * part // 8])
        before = contents(cli.folder)
        cli.refused("tune", path)
        assert lost(before, contents(cli.folder)) == ""


def test_a_folder_that_cannot_be_written_is_refused_before_anything_else(cli: Cli) -> None:
    assert "cannot write" in cli.refused("tune", "model.mlir", "-o", "/proc/tuned")


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=300), st.integers(min_value=0, max_value=2**32))
def test_damage_always_changes_a_file_a_little(content: bytes, seed: int) -> None:
    found = damaged(content, seed)
    assert found != content
    assert found == damaged(content, seed)
    assert len(found) <= len(content) + 64


def test_what_a_command_may_not_do_with_damaged_files_is_found() -> None:
    assert complaint(0, "") == complaint(1, "a difference") == complaint(2, "reading\nerror: x: no such file\n") == ""
    assert complaint(-11, "") == "ended with -11"
    assert complaint(1, "internal error: KeyError") != ""
    assert complaint(2, "Traceback (most recent call last):") != ""
    assert complaint(2, "") == "0 lines where one says it"
    assert complaint(2, "error: a\nb\nc") == "3 lines where one says it"
    assert message_of("progress\nerror: a\nb") == ["error: a", "b"]
    assert lost({"a": "1", "b": "2"}, {"a": "1", "b": "3"}) == "changed or missing: b"
    assert lost({"a": "1"}, {"a": "1", "new": "2"}) == ""
