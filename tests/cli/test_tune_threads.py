"""How many threads a program is tuned for, what is said of their number, and what a tuned folder keeps of it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from command_line import Cli

from mlir_sched import RecordStore
from mlir_sched.cli.tune import summary_lines
from mlir_sched.errors import UserError
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.targets.machine import local_task_workers
from mlir_sched.targets.target import LOCAL_SYNC, LOCAL_TASK
from mlir_sched.text import threads
from mlir_sched.tuned_folder.result import ProgramResult, TuneResult

TIMING = Timing(1e-3, 1e-3, 1e-3, 9, 1.5, 1.4, 1.6)
PROGRAM = ProgramResult(TIMING, TIMING, {}, "default", LOCAL_TASK, verdict=Verdict.RIGHT)
RESULT = TuneResult(
    "model.mlir", "llvm-cpu", 2, 0, 8, 8, 1.0, 1.0, {}, False, PROGRAM, {}, (), (), None, "store", (), None, None, {}
)


def lines(program: ProgramResult, count: int, *, chosen: bool) -> str:
    """Return the lines on a program that was tuned for so many threads."""
    return "\n".join(summary_lines(replace(RESULT, program=program, threads=count), threads_chosen=chosen))


def test_the_default_is_said_to_be_the_default() -> None:
    assert "whole program on 2 threads: untuned" in lines(PROGRAM, 2, chosen=True)
    assert "whole program on 2 threads (all cores; --threads 1 for one): untuned" in lines(PROGRAM, 2, chosen=False)


def test_one_thread_that_is_faster_than_all_cores_is_said_to_be_so() -> None:
    alone = replace(PROGRAM, device=LOCAL_SYNC)
    for chosen, several in ((True, "2"), (False, "2 (all cores)")):
        text = lines(alone, 2, chosen=chosen)
        assert "whole program on 1 thread: untuned" in text
        assert f"run it with --device=local-sync: one thread is faster than {several}; no worker" in text


def test_one_thread_is_said_to_be_the_only_one_where_it_is() -> None:
    alone = replace(PROGRAM, device=LOCAL_SYNC)
    assert "whole program on 1 thread: untuned" in lines(alone, 1, chosen=True)
    assert "whole program on 1 thread (the only usable core): untuned" in lines(alone, 1, chosen=False)


def test_a_device_has_no_number_of_threads() -> None:
    result = replace(RESULT, target="vulkan", threads=1)
    assert "whole program on vulkan: untuned" in "\n".join(summary_lines(result, threads_chosen=False))


def test_the_help_says_what_the_default_is(cli: Cli) -> None:
    shown = " ".join(cli("tune", "--help").out.split()).replace("- ", "-")  # a line may end behind a hyphen
    assert "all cores, as in iree-run-module" in shown


@pytest.mark.landing
@pytest.mark.alone
def test_by_default_a_program_is_tuned_for_as_many_threads_as_iree_starts(cli: Cli) -> None:
    count = local_task_workers()
    where = threads(count, chosen=False)
    device = ("--device", LOCAL_TASK) if count > 1 else ()
    ended = cli("tune", "model.mlir", "--trials", "2", *device)
    assert ended.code == 0, ended.err
    assert f"compiling and timing the untuned program on {where}" in ended.err
    assert f"whole program on {where}: untuned " in ended.out
    assert json.loads((cli.folder / "tuned" / "summary.json").read_text())["threads"] == count
    with RecordStore.open(cli.folder / "tuned" / "records.sqlite") as store:
        contexts = {context for task in store.tasks() for context in store.contexts(task.key)}
    assert contexts
    assert all(f"threads={count}, " in context for context in contexts)


@pytest.mark.promise
def test_iree_s_workers_are_refused_where_there_is_one_core(cli: Cli) -> None:
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        message = cli.refused("tune", "model.mlir", "--device", LOCAL_TASK)
    finally:
        os.sched_setaffinity(0, allowed)
    assert "the device local-task needs several threads, but threads is 1" in message


@pytest.mark.parametrize(("recorded", "taken"), [({"threads": 3}, 3), ({"threads": 1}, 1), ({}, 1)])
def test_replay_takes_the_threads_of_the_folder(
    cli: Cli, copied: Path, monkeypatch: pytest.MonkeyPatch, recorded: dict[str, int], taken: int
) -> None:
    def detect(name: str, threads: int | None) -> Any:
        raise UserError(f"{name} on {threads} threads")

    summary = json.loads((copied / "summary.json").read_text())
    del summary["threads"]
    (copied / "summary.json").write_text(json.dumps(summary | recorded))
    monkeypatch.setattr("mlir_sched.replaying.replay.available_cpus", lambda: 4)
    monkeypatch.setattr("mlir_sched.replaying.replay.detect_target", detect)
    assert f"llvm-cpu on {taken} threads" in cli.refused("replay", copied, "model.mlir")


def test_a_folder_for_more_threads_than_there_are_cores_is_refused(cli: Cli, copied: Path) -> None:
    summary = json.loads((copied / "summary.json").read_text())
    (copied / "summary.json").write_text(json.dumps(summary | {"threads": 100000}))
    message = cli.refused("replay", copied, "model.mlir")
    assert f"tuned for 100000 threads, and this process may use {len(os.sched_getaffinity(0))}" in message
