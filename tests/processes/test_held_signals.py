"""Ctrl-C and SIGTERM wait for the end of what must not be torn."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

from mlir_sched.database.engine import make_engine, transaction
from mlir_sched.processes.held_signals import SIGNALS, held_signals


@pytest.fixture(autouse=True)
def as_in_the_command() -> Iterator[None]:
    earlier = {number: signal.signal(number, signal.default_int_handler) for number in SIGNALS}
    yield
    for number, handler in earlier.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_comes_through_when_the_context_is_left(number: signal.Signals) -> None:
    done = []

    def work() -> None:
        with held_signals():
            signal.raise_signal(number)
            signal.raise_signal(number)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    assert signal.getsignal(number) is signal.default_int_handler


def test_a_transaction_is_committed_before_a_signal_ends_the_program(tmp_path: Path) -> None:
    engine = make_engine(make_url(f"sqlite:///{tmp_path / 'some.sqlite'}"), read_only=False, timeout_s=1.0)

    def write() -> None:
        with transaction(engine, write=True) as connection:
            signal.raise_signal(signal.SIGINT)
            connection.exec_driver_sql("CREATE TABLE kept (number INTEGER)")

    with pytest.raises(KeyboardInterrupt):
        write()
    with transaction(engine) as connection:
        assert connection.exec_driver_sql("SELECT * FROM kept").all() == []


def test_other_threads_do_without() -> None:
    failures = []

    def enter() -> None:
        try:
            with held_signals():
                pass
        except ValueError as error:
            failures.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert not failures
