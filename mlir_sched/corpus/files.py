"""Files of measured tasks: JSON lines, compressed by gzip.

The first line is the header, each other line one candidate::

    {"format": "mlir-sched measured space 2", "task": "matmul_96x96x160", "key": ..., "dispatch": {...},
     "target": {...}, "context": ..., "untuned_s": 0.00012, "pool": "sampled", "weight": 1}
    {"trace": {"sketch": ..., "decisions": [...]}, "seconds": 0.00003, "ratio": [4.0, 3.9, 4.1], "failure": null,
     "origin": "random", "work_s": 0.6}
    {"trace": {"sketch": ..., "decisions": [...]}, "seconds": null, "ratio": null, "failure": "wrong_result",
     "origin": "model", "work_s": null}

``dispatch`` and ``target`` have the fields of ``Dispatch`` and ``Target``; ``pool`` is ``complete`` where the lines are
all candidates of a part of the design space. The keys of the other lines are the fields of ``Measurement``. There are
no features: they are found anew, so that a file outlives changes of features. Times and ratios have four digits.
"""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from mlir_sched.compiler.reasons import reason
from mlir_sched.corpus.known_task import KnownTask
from mlir_sched.corpus.measured_task import MeasuredTask, Measurement, Origin
from mlir_sched.database.serialisation import dump, load
from mlir_sched.errors import FailureClass, IllegalTraceError, UserError
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.replaced_file import replace_file

SUFFIX = ".jsonl.gz"
"""How the names of the files end."""
SHIPPED = Path(__file__).parent / "data"
"""Folder of the files that come with mlir-sched, with a folder per machine."""
_FORMAT: Literal["mlir-sched measured space 2"] = "mlir-sched measured space 2"


@dataclass(frozen=True)
class Header:
    """The first line."""

    format: Literal["mlir-sched measured space 2"]
    task: str
    key: str
    dispatch: Dispatch
    target: Target
    context: str
    untuned_s: float
    pool: Literal["sampled", "complete"]
    weight: int = 1


@dataclass(frozen=True)
class Line:
    """Any other line: a candidate."""

    trace: dict[str, Any]
    seconds: float | None
    ratio: tuple[float, float, float] | None
    failure: FailureClass | None
    origin: Origin
    work_s: float | None = None


def files_in(folder: Path) -> list[Path]:
    """Return the files of measured tasks in a folder, at any depth, sorted; none where there is no such folder."""
    return sorted(folder.rglob(f"*{SUFFIX}"))


@dataclass(frozen=True)
class FiledTask(KnownTask):
    """A task whose candidates are in a file.

    Attributes:
        path: The file.
    """

    path: Path

    @staticmethod
    def of(path: Path) -> FiledTask:
        """Return the task of a file, of which the first line is read.

        Raises:
            UserError: The file is missing, or its first line is damaged or of another format.
        """
        task = task_of(_text(path).partition("\n")[0], str(path))
        return FiledTask(task.key, task.name, task.dispatch, task.target, task.context, path)

    @cached_property
    def as_measured(self) -> MeasuredTask:
        """See :attr:`KnownTask.as_measured`."""
        return read_task(self.path)


def write_task(path: Path, task: MeasuredTask) -> None:
    """Write a task into a file, whole or not at all."""
    replace_file(path, gzip.compress(text_of(task).encode(), mtime=0))


def text_of(task: MeasuredTask) -> str:
    """Return the lines of a task's file."""
    pool: Literal["sampled", "complete"] = "complete" if task.complete else "sampled"
    known = task.name, task.key, task.dispatch, task.target, task.context, _rounded(task.untuned_s)
    lines = [Header(_FORMAT, *known, pool, task.weight), *map(_line, task.measured)]
    return "".join(f"{dump(line)}\n" for line in lines)


def read_task(path: Path) -> MeasuredTask:
    """Return the task that a file holds.

    Raises:
        UserError: The file is missing, damaged or of another format; the message names the line.
    """
    return task_of(_text(path), str(path))


def task_of(text: str, name: str) -> MeasuredTask:
    """Return the task that the lines of a file hold.

    Args:
        name: What the lines are, for messages.

    Raises:
        UserError: They are damaged or of another format; the message names the line.
    """
    number = 1
    try:
        header, *lines = text.removesuffix("\n").split("\n")
        task, measured = _task(load(Header, header)), list[Measurement]()
        for number, line in enumerate(lines, start=2):  # noqa: B007 - the message has the number
            measured.append(_measurement(load(Line, line)))
        return replace(task, measured=tuple(measured))
    except (ValueError, RecursionError, IllegalTraceError) as error:
        raise _refused(name, number, error) from error


def _text(path: Path) -> str:
    try:
        return gzip.decompress(path.read_bytes()).decode()
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error}") from error
    except (EOFError, zlib.error, ValueError) as error:
        raise _refused(str(path), 1, error) from error


def _refused(name: str, number: int, error: Exception) -> UserError:
    return UserError(f"{name}: line {number} is not of the format {_FORMAT!r}: {reason(str(error))}")


def _task(header: Header) -> MeasuredTask:
    known = header.key, header.task, header.dispatch, header.target, header.context, header.untuned_s
    return MeasuredTask(*known, (), header.pool == "complete", header.weight)


def _line(measurement: Measurement) -> Line:
    trace, ratio = measurement.trace.to_json(), measurement.ratio
    why = measurement.failure, measurement.origin, measurement.work_s and _rounded(measurement.work_s)
    if ratio is None:
        return Line(trace, None, None, *why)
    middle, low, high = map(_rounded, ratio)
    return Line(trace, _rounded(measurement.seconds), (middle, low, high), *why)


def _measurement(line: Line) -> Measurement:
    seconds = math.inf if line.seconds is None else line.seconds
    return Measurement(Trace.from_json(line.trace), seconds, line.ratio, line.failure, line.origin, line.work_s)


def _rounded(number: float) -> float:
    """Return a number with four digits."""
    return float(f"{number:.4g}")
