"""A new record store."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from stored_records import TASK

from mlir_sched.database import RecordStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store with space.db"


@pytest.fixture
def store(path: Path) -> Iterator[RecordStore]:
    with RecordStore.open(path) as store:
        store.add_task(TASK)
        yield store
