"""Stores that a run is to begin from and cannot: one message, exit code 2, and nothing is lost."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import pytest
from command_line import Cli, Ended
from stored_records import everything_in, fill_store

from benchmarks.fuzz.ending import contents, lost


def run_sql(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute(statement)


def a_damaged_store(file: Path) -> None:
    fill_store(file, 100)
    content = bytearray(file.read_bytes())
    content[4096 * 2 : 4096 * 20] = b"\xa5" * (4096 * 18)
    file.write_bytes(content)


def a_store_that_is_cut_off(file: Path) -> None:
    fill_store(file, 100)
    file.write_bytes(file.read_bytes()[: 4096 * 10 + 7])


def a_store_of_another_version(file: Path) -> None:
    fill_store(file, 1)
    run_sql(file, "UPDATE mlir_sched_schema SET version = 0")


def a_store_with_other_tables(file: Path) -> None:
    fill_store(file, 1)
    run_sql(file, "UPDATE mlir_sched_schema SET digest = '0123456789ab'")


def a_database_of_another_program(file: Path) -> None:
    run_sql(file, "CREATE TABLE bookmarks (url TEXT)")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (a_damaged_store, "it is damaged"),
        (a_store_that_is_cut_off, "it is damaged"),
        (a_store_of_another_version, "has another schema (version 0, "),
        (a_store_with_other_tables, "has another schema"),
        (a_database_of_another_program, "not a record store"),
        (Path.mkdir, "is a directory"),
    ],
)
@pytest.mark.parametrize("trials", [0, 4])
def test_what_is_no_store_to_begin_from_is_refused_at_once_and_stays_as_it_is(
    cli: Cli, make: Callable[[Path], None], expected: str, trials: int
) -> None:
    given = cli.folder / "given.sqlite"
    make(given)
    before = contents(cli.folder)
    message = cli.refused("tune", "model.mlir", "--trials", f"{trials}", "--transfer", given)
    assert expected in message
    assert str(given) in message
    assert lost(before, contents(cli.folder)) == ""
    assert not (cli.folder / "tuned").exists()


class Unreachable(ModuleType):
    """A driver of a server that nobody reaches."""

    paramstyle = "format"
    __version__ = "1.31.0"

    class Error(Exception):
        pass

    class OperationalError(Error):
        pass

    class InterfaceError(Error):
        pass

    def connect(self, *_: object, **__: object) -> NoReturn:
        raise self.OperationalError('connection to server at "nowhere.invalid" failed:\n\tName or service not known\n')


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (
            "postgresql+pg8000://me:secret@nowhere.invalid/name",
            "check the store, or give another one (connection to server",
        ),
        ("mysql://me:secret@nowhere.invalid/name", "no driver for mysql://me:***@nowhere.invalid/name"),
        ("https://me:secret@nowhere.invalid/name.sqlite", "no driver for https://me:***@nowhere.invalid/name.sqlite"),
        ("sqlite:///missing.sqlite", "missing.sqlite does not exist"),
        ("://", "neither a path nor a URL"),
    ],
)
def test_a_url_that_cannot_be_reached_is_refused_at_once_without_its_password(
    cli: Cli, url: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pg8000", Unreachable("pg8000"))
    message = cli.refused("tune", "model.mlir", "--transfer", url)
    assert expected in message
    assert "secret" not in message
    assert [path.name for path in cli.folder.iterdir()] == ["model.mlir"]


@pytest.mark.landing
def test_damaged_rows_of_a_given_store_end_the_run_and_the_earlier_result_stays(
    tuned: tuple[Path, Ended], copied: Path, cli: Cli
) -> None:
    given = cli.folder / "given.sqlite"
    given.write_bytes((tuned[0] / "user.sqlite").read_bytes())
    run_sql(given, "UPDATE records SET trace = substr(trace, 1, 40) WHERE trace IS NOT NULL")
    (cli.folder / "model.mlir").write_text((cli.folder / "model.mlir").read_text().replace("128x256", "96x256"))
    before, (_, records) = contents(cli.folder), everything_in(copied / "records.sqlite")
    message = cli.refused("tune", "model.mlir", "--replace", "--trials", "0", "--threads", "1", "--transfer", given)
    assert f"the record store {given}" in message
    assert lost(before, contents(cli.folder)) in ("", "changed or missing: tuned/records.sqlite")
    assert everything_in(copied / "records.sqlite")[1].items() >= records.items()
