"""Files of measured tasks give back what was written, and what is damaged or foreign is refused in one line."""

from __future__ import annotations

import gzip
import json
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixed_targets import FIXED_CUDA
from measured_tasks import draws, failed, measured_task, timed

from benchmarks.folders import DATA
from mlir_sched.corpus import Corpus, MeasuredTask, Origin
from mlir_sched.corpus.files import files_in, read_task, write_task
from mlir_sched.errors import UserError

FIRST, SECOND, THIRD = draws(3)
TASK = measured_task([timed(FIRST), failed(SECOND), timed(THIRD, 4.0, Origin.GIVEN)])
COURSE = replace(measured_task([replace(timed(FIRST), work_s=0.5), replace(failed(SECOND), work_s=0.25)]), weight=12)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "matmul.jsonl.gz"


@pytest.mark.parametrize("task", [TASK, COURSE, measured_task(complete=True), measured_task(target=FIXED_CUDA)])
def test_a_file_gives_its_task_back(path: Path, task: MeasuredTask) -> None:
    write_task(path, task)
    assert read_task(path) == task


def test_files_without_what_came_later_are_read(path: Path) -> None:
    def older(lines: list[Any]) -> None:
        del lines[0]["weight"], lines[1]["work_s"], lines[2]["work_s"], lines[3]["work_s"]

    path.write_bytes(damaged(older))
    assert read_task(path) == TASK


def test_equal_tasks_make_equal_files(path: Path) -> None:
    write_task(path, TASK)
    first = path.read_bytes()
    write_task(path, read_task(path))
    assert path.read_bytes() == first


def test_a_file_has_four_digits_and_no_features(path: Path) -> None:
    write_task(path, measured_task([timed(FIRST, 3.0)]))
    header, line = map(json.loads, gzip.decompress(path.read_bytes()).splitlines())
    assert (header["format"], header["pool"]) == ("mlir-sched measured space 2", "sampled")
    assert line.keys() == {"trace", "seconds", "ratio", "failure", "origin", "work_s"}
    assert line["seconds"] == 0.0003333


def test_a_corpus_has_the_tasks_of_its_files_in_their_order(tmp_path: Path) -> None:
    for name in ("b", "a"):
        write_task(tmp_path / f"{name}.jsonl.gz", measured_task(key=name))
    assert [task.key for task in Corpus.of_files(files_in(tmp_path)).tasks] == ["a", "b"]
    assert files_in(tmp_path / "nothing") == []


def damaged(change: Callable[[list[Any]], object]) -> bytes:
    """Return a file whose lines, as JSON data, were changed in place."""
    lines = [json.loads(line) for line in TEXT.splitlines()]
    change(lines)
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode(), mtime=0)


def text_of_task() -> str:
    with tempfile.TemporaryDirectory() as folder:
        write_task(Path(folder) / "a", TASK)
        return gzip.decompress((Path(folder) / "a").read_bytes()).decode()


TEXT = text_of_task()


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "line 1 is not"),
        (b"plain text", "cannot be read"),
        (gzip.compress(b"", mtime=0), "line 1 is not"),
        (gzip.compress(b"\xff\xfe", mtime=0), "line 1 is not"),
        (gzip.compress(TEXT.encode(), mtime=0)[:-9], "line 1 is not"),
        (gzip.compress(TEXT.encode()[:-9], mtime=0), "line 4 is not"),
        (damaged(lambda lines: lines[0].update(format="mlir-sched measured space 1")), "line 1 is not"),
        (damaged(lambda lines: lines[0].pop("target")), "line 1 is not"),
        (damaged(lambda lines: lines[0].update(untuned_s=-1)), "untuned code takes"),
        (damaged(lambda lines: lines[0].update(weight=0)), "calls it 0 times"),
        (damaged(lambda lines: lines[0]["dispatch"].update(results=[7])), "not a dispatch"),
        (damaged(lambda lines: lines[1].update(seconds=None)), "line 2 .* either a time"),
        (damaged(lambda lines: lines[1].update(seconds=float("nan"))), "line 2 .* nobody"),
        (damaged(lambda lines: lines[1].update(work_s=-1.0)), "line 2 .* no candidate takes"),
        (damaged(lambda lines: lines[1].update(origin="elsewhere")), "line 2 is not"),
        (damaged(lambda lines: lines[2].update(failure="bad luck")), "line 3 is not"),
        (damaged(lambda lines: lines[1]["trace"].pop("decisions")), "line 2 .* not a trace"),
        (damaged(lambda lines: lines.append(lines[1])), "twice"),
    ],
    ids=[
        "empty",
        "plain text",
        "no line",
        "no Unicode",
        "cut off",
        "cut line",
        "another format",
        "no target",
        "a negative time",
        "no call",
        "no dispatch",
        "neither time nor failure",
        "no number",
        "negative work",
        "an origin of nobody's",
        "another failure",
        "no decisions",
        "a line twice",
    ],
)
def test_what_is_damaged_or_foreign_is_refused_in_one_line(path: Path, content: bytes, why: str) -> None:
    path.write_bytes(content)
    with pytest.raises(UserError, match=why) as refused:
        read_task(path)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_file_and_one_of_the_older_format_are_refused(path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        read_task(path)
    older = next((DATA / "h200").glob("*.jsonl.gz"))
    with pytest.raises(UserError, match="line 1 is not of the format 'mlir-sched measured space 2'"):
        read_task(older)


def test_a_file_with_any_changed_byte_is_refused_or_has_features(path: Path) -> None:
    rng, text = random.Random(0), TEXT.encode()
    for _ in range(200):
        place, put = rng.randrange(len(text)), bytes([rng.randrange(32, 127)])
        path.write_bytes(gzip.compress(text[:place] + put + text[place + 1 :], 1))
        with suppress(UserError):
            assert read_task(path).features().dtype == np.float32
