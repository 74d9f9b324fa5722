"""Fixtures that several test files share."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy.testing  # noqa: F401  # numpy 1.26 runs lscpu on this import, which a fast test may not
import pytest
from fixed_targets import FIXED, FIXED_CUDA, FIXED_ROCM, FIXED_VULKAN, design_spaces
from folders import ROOT, TESTS
from kept_workers import KeptWorkers
from payload_text import Payload
from payloads import PAYLOADS
from shared_work import SharedExtractions, made_once, shared_folder
from short_sessions import short_sessions

from mlir_sched.compiler.iree_compile import PROGRAM
from mlir_sched.database.user_store import OFF, VARIABLE
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task

pytest_plugins = ["pytester", "process_guard", "tiers"]
"""In ``tests/support/``, which pytest has in its path."""

TaskFor = Callable[[str | Payload], Task]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew instead of comparing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that take about a minute: begun last, such a test would keep the other worker waiting."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_configure() -> None:
    """Keep runs from the store and the compiler that the user's environment names, and let Ctrl-C through to programs.

    A shell has commands in its background ignore Ctrl-C.
    """
    os.environ[VARIABLE] = OFF
    os.environ.pop(PROGRAM, None)
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return a function that compares a script with ``tests/golden/<name>.mlir``, or writes that file anew."""

    def compare(name: str, script: str) -> None:
        path = TESTS / "golden" / f"{name}.mlir"
        if request.config.getoption("--update-golden"):
            path.write_text(script)
        assert script == path.read_text(), "the script changed; if that is meant: pytest --update-golden"

    return compare


@pytest.fixture(name="short_sessions")
def runs_with_short_sessions() -> Iterator[None]:
    """Have the runs in this process end with short sessions."""
    with short_sessions():
        yield


@pytest.fixture(scope="session")
def here() -> Target:
    """Return this machine as a target."""
    return detect_target("llvm-cpu", 1)


@pytest.fixture(scope="session")
def kept_workers() -> Iterator[KeptWorkers]:
    """Keep compiler workers for the tests that need tasks and do not test how they are extracted."""
    kept = KeptWorkers()
    yield kept
    kept.close()


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder that all workers of this run share."""
    return shared_folder(tmp_path_factory)


@pytest.fixture(scope="session")
def extractions(kept_workers: KeptWorkers, shared: Path) -> SharedExtractions:
    """Extract every program once in this run, for the tests that do not test how tasks are extracted."""
    return SharedExtractions(kept_workers, shared)


@pytest.fixture(scope="module")
def extracted_once(extractions: SharedExtractions) -> Iterator[None]:
    """Have the programs of a module's tests extracted once in this run."""
    with patch("mlir_sched.tasks.model.run_isolated", extractions.run):
        yield


@pytest.fixture(scope="session")
def payload_tasks(
    processes: None, extractions: SharedExtractions, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[Target], TaskFor]:
    """Return a function from a target to one from a payload, or its name, to its only task; each is extracted once."""

    def for_target(target: Target) -> TaskFor:
        @cache
        def extract_once(wanted: str | Payload) -> Task:
            if isinstance(wanted, str):
                return extract_once(PAYLOADS[wanted])
            path = tmp_path_factory.mktemp("payload") / "main.mlir"
            path.write_text(wanted.text)
            with patch("mlir_sched.tasks.model.run_isolated", extractions.run):
                (task,) = extract(path, target, wanted.flags).tasks
            return task

        return extract_once

    return for_target


@pytest.fixture(scope="session")
def task_for(payload_tasks: Callable[[Target], TaskFor], here: Target) -> TaskFor:
    """Return a function from a payload, or its name, to its only task on this machine."""
    return payload_tasks(here)


@pytest.fixture(scope="session")
def vulkan_task_for(payload_tasks: Callable[[Target], TaskFor]) -> TaskFor:
    """Return a function from a payload, or its name, to its only task for the fixed Vulkan device."""
    return payload_tasks(FIXED_VULKAN)


@pytest.fixture(scope="session")
def cuda_task_for(payload_tasks: Callable[[Target], TaskFor]) -> TaskFor:
    """Return a function from a payload, or its name, to its only task for the fixed CUDA device."""
    return payload_tasks(FIXED_CUDA)


@pytest.fixture(scope="session")
def rocm_task_for(payload_tasks: Callable[[Target], TaskFor]) -> TaskFor:
    """Return a function from a payload, or its name, to its only task for the fixed ROCm device."""
    return payload_tasks(FIXED_ROCM)


@pytest.fixture(scope="session")
def space_for(task_for: TaskFor) -> Callable[[str | Payload], DesignSpace]:
    """Return a function from a payload, or its name, to its default design space on the fixed machine."""

    return design_spaces(task_for, Space.default(FIXED))


@pytest.fixture(scope="session")
def wheel(processes: None, shared: Path) -> Path:
    """Build the wheel from a copy, so that nothing is left in the checkout and nothing old gets in."""

    def build(folder: Path) -> None:
        made = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "tuned", "__pycache__")
        shutil.copytree(ROOT, folder / "source", symlinks=True, ignore=made)
        command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder)]
        result = subprocess.run([*command, str(folder / "source")], capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stdout + result.stderr

    (path,) = made_once(shared / "wheel", build).glob("*.whl")
    return path
