"""What a run will need, tried before the run begins: each fault costs seconds and is told in one line."""

from __future__ import annotations

from pathlib import Path

from mlir_sched.database import RecordStore
from mlir_sched.preflight.drawing import require_pictures
from mlir_sched.preflight.room import needs_of, require_room
from mlir_sched.preflight.scratch import require_scratch
from mlir_sched.tuning.options import TuneOptions

__all__ = ["require_what_is_needed"]


def require_what_is_needed(model: Path, folder: Path | None, store: RecordStore, options: TuneOptions) -> None:
    """Check that a run can do all that it will do with files; takes less than a second.

    Args:
        model: The program.
        folder: The output folder, which exists and is locked by the run; None for a run that writes none.
        store: The run's record store.
        options: The options of the run.

    Raises:
        UserError: Something that the run needs is missing; the message says what, where and what to do.
    """
    scratch = require_scratch()
    require_room(needs_of(model, scratch, folder, store.file, options))
    store.require_writable()
    if folder is not None:
        require_pictures()
