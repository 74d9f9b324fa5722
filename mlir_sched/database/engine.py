"""Connections of the record store: SQLite made durable and shareable, and database errors as user errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from mlir_sched.compiler.flags import is_utf8
from mlir_sched.errors import UserError
from mlir_sched.processes.held_signals import held_signals

SQLITE_MAGIC = b"SQLite format 3\0"
"""First bytes of an SQLite file."""
_WRITE = "mlir_sched_write"
ATTEMPT_S = 0.5
"""Most seconds of one attempt to get a lock: Ctrl-C, which is held back meanwhile, takes effect after it."""
_HELD = ("locked", "busy")
_FULL = "full"

_ADVICE = (
    ("locked", "another process holds it: wait until it is done, or give another store"),
    ("busy", "another process holds it: wait until it is done, or give another store"),
    ("not a database", "it is not an SQLite database, or it is damaged: restore a copy, or give another store"),
    ("malformed", "it is damaged: save what is left with `sqlite3 FILE .recover`, or give another store"),
    ("not decode", "it is damaged: save what is left with `sqlite3 FILE .recover`, or give another store"),
    ("readonly", "it cannot be written: check the permissions of the file and its directory, or give another store"),
    ("unable to open", "it cannot be opened: check the permissions of the file and its directory"),
    ("full", "the disk is full: make room and run again; what was stored before is safe"),
)
_QUOTED = " with text "
"""Behind this, ``sqlite3`` quotes the content that it cannot decode, which may be a whole script."""
NOTE_S = 3.0
"""Seconds of waiting after which the user is told; a writer of one transaction is done by then."""


class StoreOutageError(UserError):
    """The store refuses at present: another process holds it, or the disk is full.

    Attributes:
        is_held: Whether another process holds it.
    """

    def __init__(self, message: str, *, is_held: bool) -> None:
        super().__init__(message)
        self.is_held = is_held


def parse_url(url_or_path: str | Path) -> URL:
    """Return the URL of a store; text without ``://`` is the path of an SQLite file.

    Raises:
        UserError: The text is neither a path nor a database URL.
    """
    text = str(url_or_path)
    if text in (":memory:", "sqlite:///:memory:"):
        raise UserError(f"the store {text} would keep nothing; give the path of a file")
    if not is_utf8(text):
        raise UserError("the store's path has bytes that are not UTF-8; give another file")
    if isinstance(url_or_path, Path) or "://" not in text:
        return URL.create("sqlite", database=str(Path(text).expanduser().absolute()))
    try:
        url = make_url(text)
    except ArgumentError:
        raise UserError("the store is neither a path nor a URL such as postgresql://user@host/name") from None
    if url.get_backend_name() == "sqlite" and url.query:
        raise UserError("options are not supported in the URL of an SQLite store: give the path alone")
    return url


def store_name(url: URL) -> str:
    """Return the name of a store for messages: its file, or its URL without the password."""
    return url.database or "memory" if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


def is_file(url: URL) -> bool:
    """Say whether the store is an SQLite file."""
    return url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")


def make_engine(url: URL, *, read_only: bool, timeout_s: float) -> Engine:
    """Return an engine whose transactions are explicit.

    SQLite commits with a full sync, and takes the write lock when a writing transaction begins, so that two writers
    wait for each other and never deadlock. An attempt to get a lock takes ``timeout_s``, at most :data:`ATTEMPT_S`.

    Raises:
        UserError: The path cannot be a store, or no driver is installed for the URL.
    """
    if url.get_backend_name() != "sqlite":
        return _make_server_engine(url)
    timeout_s = min(timeout_s, ATTEMPT_S)
    if is_file(url):
        path = Path(str(url.database))
        _check_file(path, read_only=read_only)
        address = f"{path.absolute().as_uri()}?{_open_mode(path, read_only=read_only)}"
        engine = create_engine(url, creator=lambda: _connect(address, timeout_s))
    else:
        engine = create_engine(url, creator=lambda: _connect(":memory:", timeout_s), poolclass=StaticPool)
    event.listen(engine, "begin", _begin)
    return engine


def _make_server_engine(url: URL) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True)
    except (ImportError, NoSuchModuleError) as error:
        raise UserError(f"no driver for {store_name(url)}: {error}; install it with pip") from None


def _check_file(path: Path, *, read_only: bool) -> None:
    """Refuse a path that is not and cannot become an SQLite file, before SQLite touches it."""
    if path.is_dir():
        raise UserError(f"the store {path} is a directory: give a file in it")
    if not path.parent.is_dir():
        raise UserError(f"the store {path} cannot be made: the directory {path.parent} does not exist")
    if not path.exists():
        if read_only:
            raise UserError(f"the store {path} does not exist")
        return
    try:
        with path.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise UserError(f"the store {path} cannot be read: {error.strerror}") from None
    if head and head != SQLITE_MAGIC:
        raise UserError(f"{path} is not a record store: it is not an SQLite database; give another file")


def _open_mode(path: Path, *, read_only: bool) -> str:
    """Return SQLite's options for opening a file.

    To read a file in write-ahead mode, SQLite makes an index beside it. Where the directory cannot be written and no
    log is left to read, the file is opened as immutable instead.
    """
    if not read_only:
        return "mode=rwc"
    log = path.with_name(f"{path.name}-wal")
    return "mode=ro" if os.access(path.parent, os.W_OK) or log.exists() else "mode=ro&immutable=1"


def _connect(address: str, timeout_s: float) -> sqlite3.Connection:
    connection = sqlite3.connect(address, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get(_WRITE, False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.exec_driver_sql("BEGIN")
        connection.exec_driver_sql("SELECT 1 FROM sqlite_master LIMIT 1").close()  # takes the lock of a reader


@contextmanager
def transaction(engine: Engine, *, write: bool = False, patience: Patience | None = None) -> Iterator[Connection]:
    """Yield a connection inside one transaction, committed at the end and rolled back on an error.

    A store that another process holds is waited for. Ctrl-C and SIGTERM take effect after the end of the transaction,
    or within :data:`ATTEMPT_S` while there is none yet.

    Args:
        patience: How long to wait; None for one attempt.

    Raises:
        StoreOutageError: Another process holds the store for too long, or the disk is full.
        UserError: The database refuses for another reason; the message says what to do.
    """
    waiting = Waiting(patience or Patience(0.0), store_name(engine.url))
    while True:
        with ExitStack() as stack:
            stack.enter_context(held_signals())
            stack.enter_context(user_errors(engine.url))
            connection = _begun(engine, stack, write, waiting)
            if connection is not None:
                yield connection
                return


def _begun(engine: Engine, stack: ExitStack, write: bool, waiting: Waiting) -> Connection | None:
    """Return a connection whose transaction ends with a stack; None where another attempt is to be made."""
    connection = stack.enter_context(engine.connect()).execution_options(**{_WRITE: write})
    try:
        stack.enter_context(connection.begin())
    except DBAPIError as error:
        if not _is_held(error) or not waiting.goes_on():
            raise
        return None
    return connection


def _is_held(error: BaseException) -> bool:
    return any(word in str(error) for word in _HELD)


def enable_wal(engine: Engine, *, timeout_s: float) -> None:
    """Put an SQLite file into write-ahead mode, in which readers and the writer do not wait for each other.

    SQLite does not wait for locks when it changes the mode, so the change is tried until ``timeout_s`` have passed.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            _driver_pragma(engine, "PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise _user_error(engine.url, error) from None
            time.sleep(0.01)


def check_integrity(engine: Engine, patience: Patience) -> None:
    """Raise a UserError when the structure of an SQLite file is damaged; a file that is held is waited for."""
    waiting = Waiting(patience, store_name(engine.url))
    while True:
        try:
            with user_errors(engine.url):
                result = _driver_pragma(engine, "PRAGMA quick_check(1)")
            break
        except StoreOutageError as error:
            if not error.is_held or not waiting.goes_on():
                raise
    if result != "ok":
        found = " ".join(result.split())
        raise UserError(f"the record store {store_name(engine.url)}: {_ADVICE[3][1]} ({found})")


def _driver_pragma(engine: Engine, statement: str) -> Any:
    """Run a pragma outside of any transaction."""
    connection = engine.raw_connection()
    try:
        return connection.cursor().execute(statement).fetchone()[0]
    finally:
        connection.close()


@contextmanager
def user_errors(url: URL) -> Iterator[None]:
    """Turn the errors of a database into user errors that say what to do."""
    try:
        yield
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.IntegrityError) or type(error).__name__ == "IntegrityError":
            raise
        raise _user_error(url, error.orig or error) from error
    except sqlite3.DatabaseError as error:
        raise _user_error(url, error) from error


def _user_error(url: URL, error: BaseException) -> UserError:
    text = str(error).strip().partition(_QUOTED)[0]
    advice = next((advice for word, advice in _ADVICE if word in text), "check the store, or give another one")
    message = f"the record store {store_name(url)}: {advice} ({text})"
    if _is_held(error) or _FULL in text:
        return StoreOutageError(message, is_held=_is_held(error))
    return UserError(message)


def silent(text: str) -> None:
    """Tell nobody."""
    del text


@dataclass(frozen=True)
class Patience:
    """How long to wait for the lock of another process.

    Attributes:
        seconds: Seconds to wait; Ctrl-C ends the wait.
        note: Is told, once per wait, that the store is waited for.
    """

    seconds: float
    note: Callable[[str], None] = silent


class Waiting:
    """One wait for a lock."""

    def __init__(self, patience: Patience, name: str) -> None:
        self._patience, self._name = patience, name
        self._began_s = time.monotonic()
        self._told = False

    def goes_on(self) -> bool:
        """Say whether to try once more."""
        waited_s = time.monotonic() - self._began_s
        if waited_s >= NOTE_S and not self._told:
            self._told = True
            self._patience.note(f"waiting for the record store {self._name}, which another process holds")
        return waited_s < self._patience.seconds
