"""What a run will need, tried before the run begins: each fault costs seconds and is told in one line."""

from pathlib import Path

from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.preflight.room import needs_of, require_room, require_scratch
from mlir_sched.tuned_folder.pictures import Curve, draw_dispatches
from mlir_sched.tuning.options import TuneOptions

__all__ = ["require_what_is_needed"]


def require_what_is_needed(model: Path, folder: Path | None, store: RecordStore, options: TuneOptions) -> None:
    """Check that a run can do all that it will do with files; takes less than a second.

    Args:
        folder: The output folder, which exists and is locked by the run; None for a run that writes none.

    Raises:
        UserError: Something that the run needs is missing; the message says what, where and what to do.
    """
    scratch = require_scratch()
    require_room(needs_of(model, scratch, folder, store.file, options))
    store.require_writable()
    if folder is not None:
        _require_pictures()


def _require_pictures() -> None:
    """Check that a picture can be drawn, with text and a legend.

    Raises:
        UserError: The drawing fails, as with a damaged installation of matplotlib.
    """
    try:
        draw_dispatches([Curve("dispatch", (1.0, 2.0))])
    except Exception as error:  # whatever a damaged installation raises
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"no picture can be drawn ({said}); install matplotlib again with pip") from error
