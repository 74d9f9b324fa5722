"""The store of a user: all runs add to it what they measure, and none depends on it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from platformdirs import user_data_path

from mlir_sched.database.engine import StoreOutageError
from mlir_sched.database.record import Record, StoredProgram, StoredTask
from mlir_sched.database.store import RecordStore
from mlir_sched.errors import UserError

VARIABLE = "MLIR_SCHED_STORE"
"""The environment variable that names another file, or :data:`OFF`."""
OFF = "off"
"""What is given in place of a file for no store at all."""
MOST_BYTES = 180_000_000
"""Most bytes of a user's store. With the log beside it, and a round that is added before another task is dropped, its
files stay below 200 MB."""
ATTEMPT_S = 0.05
"""Seconds for which a run waits, once per round, while another process holds the store."""
LAST_ATTEMPT_S = 2.0
"""The same at the end of a search that was not interrupted."""


def user_store_file(given: str | Path | None = None) -> Path | None:
    """Return the file of the user's store; None for none.

    What is given comes first, then :data:`VARIABLE`, then the user's data folder; the last not where ``CI`` is set.

    Raises:
        UserError: It is no file but a URL, or in the home of a user who is not there; or the variable names a file
            relative to the folder at hand, so that each folder would have a store of its own.
    """
    place = str(given or os.environ.get(VARIABLE) or "")
    if not place:
        return None if os.environ.get("CI") else _in_data_folder()
    if "://" in place:
        kind = place.partition("://")[0]
        raise UserError(f"a user's store is a file, or {OFF}, and none of {kind}; --store takes a URL")
    if place.lower() == OFF:
        return None
    try:
        file = Path(place).expanduser()
    except RuntimeError:
        raise UserError(f"{place}: there is no such home folder") from None
    if not given and not file.is_absolute():
        raise UserError(f"{VARIABLE} is {place}: give a whole path, as a user has one store in all folders")
    return file


def _in_data_folder() -> Path | None:
    """Return the file in the user's data folder; None where the user has no home."""
    with suppress(RuntimeError):
        folder = user_data_path("mlir-sched")
        if folder.is_absolute():
            return folder / "records.sqlite"
    return None


class UserStore:
    """The user's store as a run sees it, which begins with the first records; a context manager, whose end closes it.

    Args:
        file: Where it is; None for none.
        beside: The run's own store. Where it is the same file, nothing has to be added.

    Attributes:
        note: Why not all was added that was measured; empty while nothing went wrong.
    """

    def __init__(self, file: Path | None, beside: RecordStore) -> None:
        same = file is not None and beside.file is not None and os.path.realpath(beside.file) == os.path.realpath(file)
        self._file = None if same else file
        self._store: RecordStore | None = None
        self._waiting: list[tuple[StoredTask, Sequence[Record]]] = []
        self._programs: list[StoredProgram] = []
        self._begun_from: tuple[str, ...] = ()
        self.note = ""

    @property
    def takes(self) -> bool:
        """Whether there is a store that takes what is added."""
        return self._file is not None

    def add(self, task: StoredTask, records: Sequence[Record]) -> None:
        """Add records of a task, together with those that another process kept from being added until now.

        They are on the disk then, unless another process holds the store.
        """
        if self._file is not None and records:
            self._waiting.append((task, records))
            self._try(ATTEMPT_S)

    def add_program(self, program: StoredProgram) -> None:
        """Add what a run decided about a program and measured of it, as :meth:`add` does."""
        if self._file is not None:
            self._programs.append(program)
            self._try(ATTEMPT_S)

    def begin_from(self, task_keys: Iterable[str]) -> None:
        """Note that a run begins from tasks of the store, which are used then: with what is added next."""
        self._begun_from = tuple(task_keys)

    def finish(self, *, wait: bool = False) -> None:
        """Add what another process kept from being added until now; what it still keeps is given up."""
        if not self._waiting and not self._programs:
            return
        if (held := self._try(LAST_ATTEMPT_S if wait else ATTEMPT_S)) is not None:
            self._give_up(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.finish()
        finally:
            self._close()

    def _try(self, wait_s: float) -> StoreOutageError | None:
        """Add what waits; return why that has to be tried again, or None."""
        assert self._file is not None
        try:
            self._store = self._store or _opened(self._file, wait_s)
            self._store.wait_for_locks(wait_s)
            self._store.settle_bounded(self._waiting, MOST_BYTES, self._programs, self._begun_from)
        except StoreOutageError as error:
            if error.is_held:
                return error
            self._give_up(error)
        except (UserError, OSError) as error:  # which looking at a file raises whose folder may not be entered
            self._give_up(error)
        self._waiting, self._programs, self._begun_from = [], [], ()
        return None

    def _give_up(self, error: Exception) -> None:
        self.note = f"not all that this run measured is in your store over all runs: {error}"
        self._file, self._waiting, self._programs = None, [], []

    def _close(self) -> None:
        if self._store is not None:
            self._store.close()


def _opened(file: Path, wait_s: float) -> RecordStore:
    """Return the store of a file, which is made with its folder; another process is waited for so many seconds.

    Raises:
        UserError: It cannot be made, or is no store.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{file.parent}: the folder cannot be made ({error.strerror})") from None
    return RecordStore.open(file, timeout_s=wait_s)
