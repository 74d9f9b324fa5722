"""Generations: each fresh start in a store begins one, and a run uses nothing that an earlier generation left."""

from __future__ import annotations

import uuid

from mlir_sched.database import RecordStore


def generation_of(store: RecordStore, *, fresh: bool) -> int:
    """Return how often the user asked for a fresh start in a store, >= 0.

    Args:
        store: The store of a run that begins now.
        fresh: Whether this run is a fresh start; every fresh start gets a number of its own, also those of other
            processes at the same time.
    """
    generation = 0
    while store.decided(f"fresh-{generation}") is not None:
        generation += 1
    if fresh:
        own = uuid.uuid4().hex
        while store.decide(f"fresh-{generation}", lambda: own) != own:
            generation += 1  # another process was faster
        generation += 1
    return generation
