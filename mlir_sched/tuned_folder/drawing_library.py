"""matplotlib as it was installed: without the settings of the user or of the working directory.

matplotlib reads the first ``matplotlibrc`` that it finds: in the working directory, where ``MATPLOTLIBRC`` says, or in
the user's folders (``matplotlib_fname``). Such a file can have pictures drawn with LaTeX, which may be missing,
or run code of its preamble.
"""

import contextlib
import functools
import importlib.util
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Drawn = TypeVar("_Drawn")
_SETTINGS = "MATPLOTLIBRC"
_one_at_a_time = threading.RLock()


def default_style(draw: Callable[_Arguments, _Drawn]) -> Callable[_Arguments, _Drawn]:
    """Return a function that draws with matplotlib's own settings, whoever has imported matplotlib before."""

    @functools.wraps(draw)
    def drawn(*arguments: _Arguments.args, **options: _Arguments.kwargs) -> _Drawn:
        with _one_at_a_time, _imported() as matplotlib, matplotlib.rc_context():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some of the defaults are settings that will be removed
                matplotlib.rcdefaults()
            return draw(*arguments, **options)

    return drawn


def new_figure(*, width_in: float, height_in: float, dpi: int) -> Any:
    """Return an empty figure that is drawn into memory; call inside of a function with the default style."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_in, height_in), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@contextlib.contextmanager
def _imported() -> Iterator[Any]:
    """Yield matplotlib; where it is imported here for the first time, it reads its own settings and no others."""
    if "matplotlib" in sys.modules:
        yield sys.modules["matplotlib"]
        return
    before = os.environ.get(_SETTINGS)
    place = Path(str(importlib.util.find_spec("matplotlib").origin)).parent  # type: ignore[union-attr]
    os.environ[_SETTINGS] = str(place / "mpl-data" / "matplotlibrc")
    try:
        with contextlib.chdir(place):
            import matplotlib
    finally:
        os.environ.pop(_SETTINGS)
        if before is not None:
            os.environ[_SETTINGS] = before
    yield matplotlib
