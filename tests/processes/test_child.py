import signal
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import psutil
import pytest

from mlir_sched.processes import child
from mlir_sched.processes.child import Child, ChildCrashError
from mlir_sched.processes.limits import ChildLimits, ChildMemoryError, ChildStalledError, ChildTimeoutError
from mlir_sched.processes.starvation import ProcessTimes, ThreadTime

pytestmark = pytest.mark.promise

LIMITS = ChildLimits(timeout_s=60.0, memory_bytes=1 << 30)
PRELUDE = """
import os, sys, time
from mlir_sched.processes.frames import read_frame, write_frame
connection = int(sys.argv[1])
"""


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Child]]:
    """Start a child that runs a text of Python in place of a module."""
    started: list[Child] = []

    def run(text: str) -> Child:
        program = PRELUDE + textwrap.dedent(text)
        monkeypatch.setattr(child, "python_command", lambda _, *rest, python: [python, "-c", program, *rest])
        started.append(Child("the test process", "none"))
        return started[-1]

    yield run
    for process in started:
        process.kill()


def test_a_child_answers_and_what_it_prints_is_no_answer(start: Callable[[str], Child]) -> None:
    process = start("print('hello', flush=True); write_frame(connection, read_frame(connection) * 2)")
    process.send("ab", LIMITS)
    assert process.receive(LIMITS, time.monotonic()) == "abab"
    assert process.said() == "hello"


def test_long_messages_arrive_whole(start: Callable[[str], Child]) -> None:
    process = start("write_frame(connection, read_frame(connection))")
    message = bytes(range(256)) * (1 << 16)
    process.send(message, LIMITS)
    assert process.receive(LIMITS, time.monotonic()) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("print('the end', flush=True); sys.exit(7)", "the test process ended with exit code 7; it said: the end"),
        ("os.abort()", "the test process was killed by SIGABRT"),
        ("os.write(connection, (4).to_bytes(8, 'little') + b'junk')", "the test process is damaged: not a message"),
    ],
)
def test_a_child_that_dies_or_talks_nonsense_has_crashed(
    start: Callable[[str], Child], text: str, message: str
) -> None:
    with pytest.raises(ChildCrashError, match=message):
        start(text).receive(LIMITS, time.monotonic())


@pytest.mark.parametrize("text", ["time.sleep(600)", "os.write(connection, bytes([5])); time.sleep(600)"])
def test_a_child_that_does_not_answer_in_time_is_killed(start: Callable[[str], Child], text: str) -> None:
    process = start(text)
    with pytest.raises(ChildTimeoutError, match=r"stopped after 0\.5 s"):
        process.receive(ChildLimits(0.5, 1 << 30), time.monotonic())
    assert not psutil.pid_exists(process.pid)


def test_a_long_limit_is_told_in_whole_seconds(start: Callable[[str], Child]) -> None:
    with pytest.raises(ChildTimeoutError, match="stopped after 1800 s"):
        start("time.sleep(600)").enforce(ChildLimits(1800.0, 1 << 30), time.monotonic() - 1800)


def test_a_child_that_does_not_read_is_killed(start: Callable[[str], Child]) -> None:
    process = start("time.sleep(600)")
    with pytest.raises(ChildTimeoutError):
        process.send(bytes(1 << 24), ChildLimits(0.5, 1 << 30))
    assert not psutil.pid_exists(process.pid)


def test_a_child_that_takes_too_much_memory_is_killed(start: Callable[[str], Child]) -> None:
    process = start("taken = bytearray(300 << 20); time.sleep(600)")
    with pytest.raises(ChildMemoryError, match="more than 200 MiB"):
        process.receive(ChildLimits(60.0, 200 << 20), time.monotonic())
    assert not psutil.pid_exists(process.pid)


def test_killing_takes_what_the_child_has_started_and_its_folder(start: Callable[[str], Child]) -> None:
    process = start("""
        import subprocess
        write_frame(connection, subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
        time.sleep(600)
    """)
    grandchild = psutil.Process(process.receive(LIMITS, time.monotonic()))
    assert process.folder.is_dir()
    process.kill()
    process.kill()
    grandchild.wait(5)
    assert not process.folder.exists()


def test_a_limit_that_a_stopped_child_passes_says_nothing_of_the_child(start: Callable[[str], Child]) -> None:
    process = start("time.sleep(60)")
    process.send_signal(signal.SIGSTOP)
    with pytest.raises(ChildStalledError, match=r"stopped after 0.3 s, in which a signal kept it from running"):
        process.receive(replace(LIMITS, timeout_s=0.3), time.monotonic())


def test_a_limit_that_passes_while_this_process_stands_still_says_nothing_of_the_child(
    start: Callable[[str], Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "STOOD_STILL_S", 0.4)
    monkeypatch.setattr(child, "is_ready", lambda *_: time.sleep(0.5))
    with pytest.raises(ChildStalledError, match=r"of which this machine stood still for 0\.\d s"):
        start("time.sleep(60)").receive(replace(LIMITS, timeout_s=0.3), time.monotonic())


@pytest.mark.alone  # needs a core
def test_a_child_that_works_for_too_long_has_no_excuse(start: Callable[[str], Child]) -> None:
    with pytest.raises(ChildTimeoutError, match=r"stopped after 0.3 s$") as error:
        start("while True: pass").receive(replace(LIMITS, timeout_s=0.3), time.monotonic())
    assert not isinstance(error.value, ChildStalledError)


def test_how_long_a_child_waits_for_a_processor_is_read_once_it_is_late(
    start: Callable[[str], Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[ProcessTimes] = []

    def of(_: int) -> ProcessTimes:
        read.append(ProcessTimes(1.0 * len(read), {1: ThreadTime(0.0, 0.9 * len(read))}))
        return read[-1]

    monkeypatch.setattr(ProcessTimes, "of", of)
    process = start("while True: message = read_frame(connection); message and write_frame(connection, message)")
    for _ in range(3):  # the first answer takes a start of Python
        read.clear()
        process.send("a", LIMITS)
        process.receive(LIMITS, time.monotonic())
    assert read == []
    process.send("", LIMITS)
    with pytest.raises(ChildStalledError, match=r"stopped after 0\.3 s, of which it waited 0\.9 s for a processor"):
        process.receive(replace(LIMITS, timeout_s=0.3), time.monotonic())
    assert len(read) == 2
