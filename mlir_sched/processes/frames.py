"""Messages between a parent and its child, whole or not at all.

A frame is a length (8 bytes, little endian) and a pickle. The side that must not wait for ever passes a function that
waits until the descriptor is ready, and may give up: so a child that writes half a frame and hangs is detected.
"""

import os
import pickle
import select
from collections.abc import Callable
from typing import Any, TypeAlias

from mlir_sched.errors import MlirSchedError

Wait: TypeAlias = Callable[[int, int], None]
"""A function of a descriptor and an event (``select.POLLIN`` or ``POLLOUT``): returns when the descriptor can be read
or written without blocking; raises to give up."""


class FrameError(MlirSchedError):
    """What arrived is no message: the process that wrote it is damaged."""


def is_ready(descriptor: int, event: int, timeout_s: float) -> bool:
    """Wait at most ``timeout_s`` seconds, and return whether a descriptor is ready or its other end is closed.

    Args:
        event: ``select.POLLIN`` or ``select.POLLOUT``.
        timeout_s: Seconds, >= 0.
    """
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(timeout_s * 1e3))


def write_frame(descriptor: int, message: object, wait: Wait | None = None) -> None:
    """Write one message, whole.

    Args:
        descriptor: Pipe or socket to write to; with ``wait`` it must not block (``os.set_blocking``).
        wait: Called before each write.

    Raises:
        BrokenPipeError: The reader is gone.
    """
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    data = memoryview(len(body).to_bytes(8, "little") + body)
    while data:
        if wait is not None:
            wait(descriptor, select.POLLOUT)
        data = data[os.write(descriptor, data) :]


def read_frame(descriptor: int, wait: Wait | None = None) -> Any:
    """Return the next message.

    Args:
        wait: Called before each read; without it the call blocks until the message has arrived.

    Raises:
        EOFError: The writer is gone.
        FrameError: The bytes are no message.
    """
    body = _read_exactly(descriptor, int.from_bytes(_read_exactly(descriptor, 8, wait), "little"), wait)
    try:
        return pickle.loads(body)
    except Exception as error:
        raise FrameError(f"not a message: {type(error).__name__}: {error}") from error


def _read_exactly(descriptor: int, count: int, wait: Wait | None) -> bytes:
    parts: list[bytes] = []
    while count > 0:
        if wait is not None:
            wait(descriptor, select.POLLIN)
        part = os.read(descriptor, min(count, 1 << 20))
        if not part:
            raise EOFError("the other end of the pipe is closed")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
