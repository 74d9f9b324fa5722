"""Records that a store has of the same tasks, but of another machine or version, and that a run does not use."""

from collections.abc import Iterable

from mlir_sched.database.record import context_parts
from mlir_sched.database.store import RecordStore

CHOSEN = ("threads", "generation")
"""Parts of a context that the user chooses for every run."""


def others_measured(store: RecordStore, task_keys: Iterable[str], context: str) -> tuple[str, ...]:
    """Return one sentence on records that do not count in a context; none if there are no such records.

    Records that differ only in what the user chose, such as the number of threads, are not mentioned.
    """
    own = _machine(context)
    found: dict[str, set[str]] = {}
    for key in task_keys:
        for other in map(_machine, store.contexts(key)):
            if differing := ", ".join(f"{name} {other.get(name)}" for name in own if other.get(name) != own[name]):
                found.setdefault(differing, set()).add(key)
    if not found:
        return ()
    differing, keys = max(found.items(), key=lambda item: len(item[1]))
    of_all = f"{len(keys)} of the dispatches" if len(keys) > 1 else "a dispatch"
    return (f"the store has records of {of_all} from another machine or version ({differing}), which are not used",)


def _machine(context: str) -> dict[str, str]:
    return {name: value for name, value in context_parts(context).items() if name not in CHOSEN}
