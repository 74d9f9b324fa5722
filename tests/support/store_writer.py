"""A process that writes a record store until it is killed; ``database/test_database.py`` runs it.

Arguments: the store, a tag that makes the candidate keys unique, the number of rounds. It prints ``ready`` before it
opens the store, and the number of each round of 16 once ``add`` returned.
"""

import sys

from stored_records import TASK

from mlir_sched.database import RecordStore
from mlir_sched.database.record import Origin, Record
from mlir_sched.database.serialisation import dump
from mlir_sched.outcome import Outcome, Timing, Verdict

ROUND_SIZE = 16


def record(tag: str, round_: int, index: int) -> Record:
    timing = Timing(1e-3 / 3, 1e-3 / 7, 1e-3 / 2, 10, 1.0 + index / 3, 1.0, 2.0)
    outcome = Outcome(timing, None, "ab" * 32, verdict=Verdict.RIGHT)
    key = f"{tag}-{round_}-{index}"
    return Record("task", "threads=1", key, Origin.SCRIPT, None, "// script\n" * 300, outcome, round_, seed=0)


def main(store_path: str, tag: str, rounds: int) -> None:
    dump(TASK.target)  # loads what the first task needs
    print("ready", flush=True)
    with RecordStore.open(store_path) as store:
        store.add_task(TASK)
        for round_ in range(rounds):
            store.add(record(tag, round_, index) for index in range(ROUND_SIZE))
            print(round_, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
