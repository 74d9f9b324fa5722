"""What ``mlir-sched inspect --user-store`` shows: how much of what kind a user's store holds."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredTask, context_parts
from mlir_sched.database.user_store import VARIABLE, user_store_file
from mlir_sched.errors import UserError
from mlir_sched.text import threads


@dataclass(frozen=True)
class Part:
    """The tasks of one kind, or those that were measured on one machine.

    Attributes:
        name: What they have in common.
        tasks: Their number.
        records: Number of their records, those of untuned code among them.
    """

    name: str
    tasks: int
    records: int


@dataclass(frozen=True)
class UserStoreView:
    """A user's store.

    Attributes:
        bytes: Size of the file.
        ops: Its tasks by the kinds of their ops and the element type of their result; first those with most records.
        machines: Its tasks by the device, or the processor and the number of threads, that they were measured on.
    """

    path: str
    bytes: int
    tasks: int
    records: int
    ops: tuple[Part, ...]
    machines: tuple[Part, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the view as JSON data."""
        return {"kind": "user store"} | asdict(self)


def view_user_store() -> UserStoreView:
    """Return a view of the user's store, which stays as it is.

    Raises:
        UserError: There is none, or it cannot be read.
    """
    file = user_store_file()
    if file is None:
        raise UserError(f"no store is kept over all runs here: {VARIABLE} is off, or CI is set")
    with RecordStore.open(file, read_only=True) as store:
        tasks, counts = store.tasks(), store.counts()
    ops = {task.key: _ops(task) for task in tasks}
    counts = {key: number for key, number in counts.items() if key[0] in ops}  # a run may add tasks meanwhile
    return UserStoreView(
        str(file),
        file.stat().st_size,
        len(tasks),
        sum(counts.values()),
        _parts(counts, lambda task, _: ops[task]),
        _parts(counts, lambda _, context: _machine(context)),
    )


def _parts(counts: Mapping[tuple[str, str], int], name_of: Callable[[str, str], str]) -> tuple[Part, ...]:
    """Return parts of a store from its records by task and context, and from the name of the part of each of these."""
    tasks, records = dict[str, set[str]](), Counter[str]()
    for (task, context), number in counts.items():
        name = name_of(task, context)
        tasks.setdefault(name, set()).add(task)
        records[name] += number
    return tuple(Part(name, len(tasks[name]), number) for name, number in records.most_common())


def _ops(task: StoredTask) -> str:
    """Return the kinds of a task's ops, fills aside, and the type of its result: ``contraction + elementwise, f32``."""
    if (dispatch := task.dispatch) is None:
        return "not tunable"
    kinds = " + ".join(op.kind for op in dispatch.beside_fills or dispatch.fills)
    return f"{kinds}, {dispatch.root.outputs[0].tensor.element_type}"


def _machine(context: str) -> str:
    """Return the device of a context, or its processor with the number of threads."""
    parts = context_parts(context)
    if "cpu" not in parts or not parts.get("threads", "").isdecimal():
        return parts.get("device", context)
    return f"{parts['cpu']}, {threads(int(parts['threads']))}"
