"""The pictures of a report: whether this installation can draw them."""

from __future__ import annotations

from mlir_sched.errors import UserError
from mlir_sched.tuned_folder.pictures import Curve, draw_dispatches


def require_pictures() -> None:
    """Check that a picture can be drawn, with text and a legend.

    Raises:
        UserError: The drawing fails, as with a damaged installation of matplotlib.
    """
    try:
        draw_dispatches([Curve("dispatch", (1.0, 2.0))])
    except Exception as error:  # whatever a damaged installation raises
        said = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UserError(f"no picture can be drawn ({said}); install matplotlib again with pip") from error
