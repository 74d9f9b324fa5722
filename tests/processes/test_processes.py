"""Child processes: what they import, what they may take, and that nothing is left of them."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import psutil
import pytest

import mlir_sched
from mlir_sched.errors import UserError
from mlir_sched.processes import memory, temporary
from mlir_sched.processes.executable import run_program, running_program
from mlir_sched.processes.frames import FrameError, is_ready, read_frame, write_frame
from mlir_sched.processes.limits import ChildError, ChildLimits
from mlir_sched.processes.memory import child_memory_bytes, machine_memory_bytes, resident_bytes

pytestmark = pytest.mark.alone

PLANTED = ("psutil", "queue", "numpy", "mlir_sched", "trace", "pickle", "mlir_sched.errors")
CHILDREN = {
    "runner": "from mlir_sched.runner import Runner; print(Runner().noise(0.05).lost >= 0)",
    "worker": """
        from mlir_sched.compiler.worker_process import run_isolated
        print(run_isolated((), "time:sleep", 0) is None)
    """,
    "probe": "from mlir_sched.targets.vulkan import devices; print(devices() is not None)",
}


def assert_gone(*processes: psutil.Process) -> None:
    """Require that processes end within a few seconds; zombies that nobody waits for have ended."""
    deadline = time.monotonic() + 10
    for process in processes:
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, f"{process} is left"
            time.sleep(0.02)


# What a child imports


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A folder with modules that shadow those of children and leave a trace when they are imported."""
    folder = tmp_path / "downloaded"
    folder.mkdir()
    for name in PLANTED:
        path = folder / Path(*name.split("."))
        path.mkdir(exist_ok=True)
        path = path / "__init__.py"
        path.write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\nraise ImportError('planted')\n")
    return folder


@pytest.mark.parametrize(
    "python_path", [None, ":", "{root}:"], ids=["plain", "empty-entry", "checkout-and-empty-entry"]
)
@pytest.mark.parametrize("name", CHILDREN)
def test_no_child_imports_from_the_working_directory(
    planted: Path, tmp_path: Path, name: str, python_path: str | None
) -> None:
    program = tmp_path / "parent.py"
    program.write_text(
        "import sys, os; sys.path[:] = [p for p in sys.path if p not in ('', os.getcwd())]\n"
        + textwrap.dedent(CHILDREN[name])
    )
    environment = dict(os.environ)
    if python_path is not None:
        environment["PYTHONPATH"] = python_path.format(root=Path(mlir_sched.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-P", str(program)], cwd=planted, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True\n", done.stderr
    assert not (tmp_path / "imported").exists()


WHAT_IT_SEES = """
import importlib.util, json, sys, mlir_sched
found = map(importlib.util.find_spec, ["trace", "target", "errors", "emission"])
shadowed = [spec.name for spec in found if spec is not None and "mlir_sched" in str(spec.origin)]
print(json.dumps([mlir_sched.__file__, shadowed]))
"""


def test_a_child_finds_this_very_package_and_the_standard_library(tmp_path: Path) -> None:
    """The package is imported from a copy that is on no default path, as from a checkout beside an installed one."""
    source = Path(mlir_sched.__file__).parent
    copy = tmp_path / "copy" / "mlir_sched"
    copy.mkdir(parents=True)
    shutil.copy(source / "__init__.py", copy)
    shutil.copy(source / "errors.py", copy)
    shutil.copytree(source / "processes", copy / "processes")
    (copy / "sees.py").write_text(WHAT_IT_SEES)
    program = f"""
        import sys; sys.path.insert(0, {str(copy.parent)!r})
        import subprocess
        from mlir_sched.processes.python_child import child_environment, python_command
        subprocess.run(python_command("mlir_sched.sees"), env=child_environment("/tmp"), check=True)
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True
    )
    package, shadowed = json.loads(done.stdout)
    assert Path(package).parent == copy
    assert shadowed == []


# What ends with its parent, and what is left of it

PARENT = """
import subprocess, sys, threading, time
from mlir_sched.processes.limits import ChildLimits
from mlir_sched.processes.executable import run_program
from mlir_sched.processes.temporary import temporary_folder
folder = temporary_folder()
run_program(["/bin/sh", "-c", "echo $$ > %s; exec sleep 600"], ChildLimits(600, 1 << 30))
"""


def started(told: Path) -> tuple[subprocess.Popen[bytes], psutil.Process]:
    """Start a parent that runs a program, which says its process id in a file, and return both."""
    environment = os.environ | {"TMPDIR": str(told.parent)}
    parent = subprocess.Popen([sys.executable, "-c", PARENT % told], env=environment)
    deadline = time.monotonic() + 30
    while not (told.exists() and told.read_text().strip()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return parent, psutil.Process(int(told.read_text()))


def test_a_program_and_the_folders_of_a_killed_parent_do_not_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent, shell = started(tmp_path / "told")
    parent.kill()
    parent.wait()
    assert_gone(shell)
    (left,) = tmp_path.glob("mlir-sched-run-*")
    assert list(left.iterdir())
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary.remove_stale_folders()
    assert not left.exists()


def test_the_folders_of_a_living_process_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parent, shell = started(tmp_path / "told")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary.remove_stale_folders()
    (kept,) = tmp_path.glob("mlir-sched-run-*")
    os.killpg(shell.pid, signal.SIGTERM)  # as a service manager does; it must not end what the parent waits for
    time.sleep(0.2)
    assert shell.is_running()
    assert parent.poll() is None
    parent.send_signal(signal.SIGINT)
    parent.wait(10)
    assert_gone(shell)
    assert not kept.exists()


def test_folders_of_others_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "kept").mkdir()
    (tmp_path / "mlir-sched-run-link").symlink_to(tmp_path / "kept")
    (tmp_path / "mlir-sched-run-file").touch()
    temporary.remove_stale_folders()
    assert len(list(tmp_path.iterdir())) == 3


# What a child may take


def test_a_program_ends_with_its_output_and_its_exit_code() -> None:
    ended = run_program(["/bin/sh", "-c", "echo out; echo error >&2; exit 3"], ChildLimits(10, 1 << 30))
    assert (ended.code, ended.output, ended.errors) == (3, b"out\n", b"error\n")
    assert run_program(["/bin/sh", "-c", "kill -9 $$"], ChildLimits(10, 1 << 30)).code == -signal.SIGKILL


@pytest.mark.parametrize(
    ("script", "timeout_s", "memory_bytes", "message"),
    [
        pytest.param("sleep 600 & wait", 0.3, 1 << 30, "stopped after 0.3 s", id="time"),
        pytest.param("{python} -c 'x = b\"1\" * (1 << 29); input()' <&0 & wait", 30, 1 << 28, "256 MiB", id="memory"),
    ],
)
def test_a_program_over_a_limit_is_killed_with_what_it_started(
    script: str, timeout_s: float, memory_bytes: int, message: str
) -> None:
    before = set(psutil.Process().children(recursive=True))
    shell = ["/bin/sh", "-c", script.format(python=sys.executable)]
    with pytest.raises(ChildError, match=message):
        run_program(shell, ChildLimits(timeout_s, memory_bytes))
    assert_gone(*set(psutil.Process().children(recursive=True)) - before)


def test_a_program_runs_beside_other_work_and_no_longer_than_that(tmp_path: Path) -> None:
    told, limits = tmp_path / "told", ChildLimits(60, 1 << 30)
    with running_program(["/bin/sh", "-c", f"echo $$ > {told}; echo out"], limits) as wait:
        while not told.exists():
            time.sleep(0.01)
        assert wait().output == b"out\n"
    told.unlink()
    with running_program(["/bin/sh", "-c", f"echo $$ > {told}; exec sleep 600"], limits):
        while not (told.exists() and told.read_text().strip()):
            time.sleep(0.01)
        shell = psutil.Process(int(told.read_text()))
    assert_gone(shell)


def test_memory_is_that_of_a_process_and_its_children() -> None:
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & sleep 60"]) as shell:
        shells = psutil.Process(shell.pid)
        while len(shells.children()) < 2:
            time.sleep(0.01)
        parts = [process.memory_info().rss for process in (shells, *shells.children())]
        assert resident_bytes(shell.pid) == pytest.approx(sum(parts), rel=0.2)
        for process in (*shells.children(), shells):
            process.kill()
    assert resident_bytes(shell.pid) == 0


@pytest.mark.parametrize(
    ("groups", "files", "limits"),
    [
        ("0::/a/b\n", {"a/memory.max": "max\n", "a/b/memory.max": "1000\n", "memory.max": "2000\n"}, [1000, 2000]),
        ("4:cpu,memory:/a\n2:pids:/a\n", {"memory/a/memory.limit_in_bytes": "300\n"}, [300]),
        ("0::/../elsewhere\n", {"memory.max": "70\n"}, [70]),
        ("", {}, []),
    ],
)
def test_the_limits_of_a_container_are_found(
    tmp_path: Path, groups: str, files: dict[str, str], limits: list[int]
) -> None:
    (tmp_path / "own").write_text(groups)
    for name, text in files.items():
        (tmp_path / "mounted" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "mounted" / name).write_text(text)
    assert memory._cgroup_limits(tmp_path / "own", tmp_path / "mounted") == limits


def test_a_child_may_take_most_of_the_machines_memory_but_not_all() -> None:
    assert 0.5 * machine_memory_bytes() < child_memory_bytes() < 0.9 * machine_memory_bytes()
    assert child_memory_bytes(4) == child_memory_bytes() // 4


# Messages


def test_messages_arrive_whole() -> None:
    ours, theirs = os.pipe()
    for message in (None, {"a": [1, 2.5]}, b"x" * 1000):
        write_frame(theirs, message)
        assert read_frame(ours) == message
    os.close(theirs)
    with pytest.raises(EOFError):
        read_frame(ours)
    os.close(ours)


@pytest.mark.parametrize("sent", [b"\x05", (100).to_bytes(8, "little") + b"half"], ids=["half-a-length", "half-a-body"])
def test_half_a_message_is_not_waited_for_for_ever(sent: bytes) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, sent)
    with pytest.raises(TimeoutError):
        read_frame(ours, impatient)
    os.close(theirs)
    os.close(ours)


def test_a_reader_that_hangs_is_not_waited_for_for_ever() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(theirs, False)
    with pytest.raises(TimeoutError):
        write_frame(theirs, b"x" * (1 << 20), impatient)
    os.close(theirs)
    os.close(ours)


def impatient(descriptor: int, event: int) -> None:
    if not is_ready(descriptor, event, 0.05):
        raise TimeoutError


def test_what_is_no_message_is_an_error() -> None:
    ours, theirs = os.pipe()
    for body in (b"junk", pickle.dumps(UserError)[:-3]):
        os.write(theirs, len(body).to_bytes(8, "little") + body)
        with pytest.raises(FrameError):
            read_frame(ours)
    os.close(theirs)
    os.close(ours)
