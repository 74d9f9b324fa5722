"""Holds signals back until an operation that must not be interrupted, such as a commit to a database, has ended.

Python raises ``KeyboardInterrupt`` between any two of its instructions, also inside a library that is not written for
such interruptions: SQLAlchemy then fails with an assertion of its own.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def termination_blocked() -> Iterator[None]:
    """Block SIGTERM in this thread: a child that is started meanwhile begins with the signal blocked.

    The first code of every child ignores the signal and then lifts the block (``launch_module.py``,
    ``launch_program.py``), so that no instant is left in which the signal ends the child.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def held_signals() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back while the context is open, then deliver the first that came.

    Python handles signals in the main thread only; in other threads nothing is held back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        signal.signal(number, lambda caught, frame: came.append((caught, frame)))
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if came:
            handler = handlers[signal.Signals(came[0][0])]
            if callable(handler):
                handler(*came[0])
            elif handler == signal.SIG_DFL:
                signal.raise_signal(came[0][0])
