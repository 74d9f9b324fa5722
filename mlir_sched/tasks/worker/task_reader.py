"""The tasks of a program at the flow phase: one per distinct dispatch, cut out and read."""

import hashlib
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mlir_sched.compiler.reasons import reason
from mlir_sched.errors import CompilerError
from mlir_sched.payload import Dispatch
from mlir_sched.tasks.task import Task
from mlir_sched.tasks.worker.analysis import NotTunableError, OnlyCopiesError, analyse
from mlir_sched.tasks.worker.call_counts import DispatchCall
from mlir_sched.tasks.worker.integers.integer_ranges import IntegerRanges
from mlir_sched.tasks.worker.passed_numbers import dispatches_by_entry, passed_numbers
from mlir_sched.tasks.worker.task_program import Surroundings, TaskProgram, build_task_program
from mlir_sched.tasks.worker.task_sources import TaskSource, compiled_alone, compiled_together

TOGETHER = "all dispatches together"
"""What is at work while the programs of all tasks are compiled at once; skipped, each is compiled alone."""


@dataclass
class TaskReader:
    """Makes tasks of the dispatches that a program calls.

    Attributes:
        reused: Bytes of constants between two calls with the same constants; 0 where constants are timed warm.
        known: Tasks of other programs, by key: an equal task is not read again.
        skipped: Dispatches to leave alone, each with the reason.
        at_work: A file into which each dispatch's name, or :data:`TOGETHER`, is written first: the culprit of a crash.
        errors: Tracebacks of mlir-sched's own errors so far, each of which cost one task.
    """

    flags: tuple[str, ...]
    target_key: str
    reused: int
    known: Mapping[str, Task]
    skipped: Mapping[str, str]
    at_work: Path
    errors: list[str] = field(default_factory=list)
    _programs: dict[str, TaskProgram] = field(default_factory=dict)  # by the key of their code alone
    _sources: dict[str, TaskSource] = field(default_factory=dict)  # of these programs, where compiled together
    _calls: dict[str, list[Any]] = field(default_factory=dict)  # all calls in the program, by entry point

    def tasks(self, module: Any, calls: Iterable[DispatchCall]) -> tuple[Task, ...]:
        """Return the tasks of the calls in a program, those of equal code merged, in the order of their first call."""
        self._calls, ranges, around = dispatches_by_entry(module), IntegerRanges(module), Surroundings.of(module)
        cut = merge_equal(self._cut(around, call, ranges) for call in calls)
        self._compile_together([each.key for each in cut if with_reuse(each, self.reused).key not in self.known])
        found = tuple(map(self._read, cut))
        self.at_work.write_text("")
        return found

    def _compile_together(self, keys: Sequence[str]) -> None:
        """Compile the programs of tasks to sources at once; where that fails, each is compiled when its task is read.

        Args:
            keys: Keys of the tasks, by their code alone; some may have no program.
        """
        programs = {key: self._programs[key].text for key in keys if key in self._programs}
        if len(programs) < 2 or TOGETHER in self.skipped:
            return
        self.at_work.write_text(TOGETHER)
        with suppress(CompilerError):
            self._sources = dict(zip(programs, compiled_together([*programs.values()]), strict=True))

    def _cut(self, around: Surroundings, call: DispatchCall, ranges: IntegerRanges) -> Task:
        """Return the task of some calls, without its source; its program, if there is one, is kept."""
        self.at_work.write_text(call.entry)
        task = Task(
            key=self._key(call.text),
            name=call.entry,
            weight=call.weight,
            source="",
            inputs=(),
            outputs=(),
            dispatch=None,
            not_tunable="",
            flags=self.flags,
            constants=tuple(sorted(call.constants)),
            may_not_run=call.may_not_run,
        )
        if call.entry in self.skipped:
            return replace(task, not_tunable=self.skipped[call.entry])
        try:
            numbers = passed_numbers(call.ops, self._calls[str(call.ops[0].attributes["entry_points"][0])])
            program = build_task_program(around, call.ops[0], numbers.groups)
            limits = (*ranges.of_inputs(call.ops[0]), *(None for _ in numbers.groups))
        except NotTunableError as error:
            return replace(task, not_tunable=reason(str(error)))
        except Exception as error:
            return self._broken(task, error)
        key = self._key(program.text, *(repr(numbers.values) for _ in numbers.groups[:1]))
        self._programs[key] = program
        return replace(
            task, key=key, inputs=program.inputs, outputs=program.outputs, numbers=numbers.values, integer_ranges=limits
        )

    def _read(self, cut: Task) -> Task:
        """Return a task with its source and its dispatch, and with how cold its constants are."""
        self.at_work.write_text(cut.name)
        task = with_reuse(cut, self.reused)
        if known := self.known.get(task.key):
            read = {name: getattr(known, name) for name in ("source", "dispatch", "not_tunable", "only_copies")}
            return replace(task, **read)
        if cut.key not in self._programs:
            return task
        try:
            source = self._sources.pop(cut.key, None) or compiled_alone(self._programs[cut.key].text)
            dispatch = dispatch_of(source.function)
        except NotTunableError as error:
            return replace(task, not_tunable=reason(str(error)))
        except CompilerError as error:
            return replace(task, not_tunable=f"IREE does not compile it alone: {reason(str(error))}")
        except Exception as error:
            return self._broken(task, error)
        if isinstance(dispatch, NotTunableError):
            copies = isinstance(dispatch, OnlyCopiesError)
            return replace(task, source=source.text, not_tunable=reason(str(dispatch)), only_copies=copies)
        return replace(task, source=source.text, dispatch=dispatch)

    def _broken(self, task: Task, error: Exception) -> Task:
        """Return a task that an error of mlir-sched's own keeps from being tuned, and keep its traceback."""
        self.errors.append(f"{task.name}: {''.join(traceback.format_exception(error))}")
        return replace(task, not_tunable=f"internal error: {reason(f'{type(error).__name__}: {error}')}")

    def _key(self, text: str, *further: str) -> str:
        return _digest(text, self.target_key, *self.flags, *further)


def merge_equal(tasks: Iterator[Task]) -> tuple[Task, ...]:
    """Return the tasks, those of equal key merged into one with the sum of their weights and the constants of all."""
    merged: dict[str, Task] = {}
    for task in tasks:
        seen = merged.get(task.key)
        if seen is None:
            merged[task.key] = task
        else:
            merged[task.key] = replace(
                seen,
                weight=seen.weight + task.weight,
                constants=tuple(sorted({*seen.constants} & {*task.constants})),
                may_not_run=seen.may_not_run and task.may_not_run,
            )
    return tuple(merged.values())


def with_reuse(task: Task, reused: int) -> Task:
    """Return a task that knows how cold its constants are, under a key that says so."""
    if not (reused and task.constants):
        return replace(task, constants=())
    key = _digest(task.key, str(task.constants), str(reused))
    return replace(task, key=key, reuse_bytes=reused)


def dispatch_of(function: Any) -> Dispatch | NotTunableError:
    """Return the dispatch of a function as a script meets it, or of None; or why it cannot be tuned."""
    if function is None:
        return NotTunableError("it has no code of its own")
    try:
        return analyse(function)
    except NotTunableError as error:
        return error


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
