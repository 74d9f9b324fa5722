"""The record store: durable, shareable between processes, versioned."""

from mlir_sched.database.store import RecordStore

__all__ = ["RecordStore"]
