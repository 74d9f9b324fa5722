"""The report of a run: its tuning curve as a picture, and one page without external resources."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from mlir_sched.text import decisions, durations, failures, median, seconds, speedup
from mlir_sched.tuned_folder.installation import replace_file
from mlir_sched.tuned_folder.result import DispatchResult, TuneResult

CURVE, REPORT = "curve.png", "report.html"
CURVES_SHOWN = 10
"""Most dispatches in the picture, which shows those that gained most."""

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { border: 1px solid #ccc; padding: .3em .6em; text-align: left }
td.number { text-align: right; white-space: nowrap } code { font-size: 90% } img { max-width: 100% }
"""


@dataclass(frozen=True)
class Curve:
    """The tuning curve of one dispatch.

    Attributes:
        name: The dispatch.
        ratios: Speed-up of every candidate in the order tried; None for one that failed.
    """

    name: str
    ratios: tuple[float | None, ...]

    @property
    def best(self) -> np.ndarray:
        """Best speed-up after each candidate, 1 before any is faster than the untuned code."""
        known = np.array([1.0 if ratio is None else ratio for ratio in (1.0, *self.ratios)])
        return np.maximum.accumulate(known)


def write_report(folder: Path, result: TuneResult, curves: Sequence[Curve]) -> None:
    """Write the picture and the page of a run into its folder."""
    picture = draw(curves)
    replace_file(folder / CURVE, picture)
    replace_file(folder / REPORT, page(result, picture).encode())


def draw(curves: Sequence[Curve]) -> bytes:
    """Return a PNG: best speed-up so far against trials, one line per dispatch, a dot per valid candidate."""
    figure = Figure(figsize=(8, 4.5), dpi=120, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    shown = sorted((c for c in curves if c.ratios), key=lambda curve: -float(curve.best[-1]))[:CURVES_SHOWN]
    for curve in shown:
        (line,) = axes.step(range(len(curve.best)), curve.best, where="post", label=_short(curve.name))
        valid = [(i + 1, ratio) for i, ratio in enumerate(curve.ratios) if ratio is not None]
        axes.plot(*zip(*valid, strict=True), ".", color=line.get_color(), alpha=0.4) if valid else None
    axes.axhline(1.0, color="gray", linewidth=0.8, linestyle="--")
    axes.set_xlabel("trials")
    axes.set_ylabel("speed-up against the untuned dispatch")
    if shown:
        axes.legend(fontsize="small")
    output = io.BytesIO()
    figure.savefig(output, format="png")
    return output.getvalue()


def page(result: TuneResult, picture: bytes) -> str:
    """Return the report as HTML."""
    program = result.program
    image = base64.b64encode(picture).decode()
    rows = "\n".join(_row(dispatch) for dispatch in result.dispatches)
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    interrupted = " It was interrupted." if result.interrupted else ""
    took = durations(result.seconds, result.run_seconds)
    variants = ", ".join(f"{name} {ratio:.2f}x" for name, ratio in program.variants.items())
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{_escape(Path(result.model).name)}</title>
<style>{_STYLE}</style></head><body>
<h1>{_escape(result.model)}</h1>
<p>Whole program: untuned {seconds(program.untuned.median_s)}, tuned {seconds(program.tuned.median_s)}:
<b>{speedup(program.tuned)}</b>{"" if program.gained else " (no gain)"}, flags of the variant
{_escape(program.variant)}, numbers {"checked" if program.verified else "not checked"}.</p>
<p>{result.trials} trials in {took}, {result.measured} measured now, seed {result.seed},
{result.threads} thread(s), {_escape(result.target)} on {_escape(program.device)}, {_escape(versions)}.{interrupted}</p>
<p>Untuned variants: {_escape(variants)}.</p>
<h2>Best so far against trials</h2>
<img alt="Best speed-up so far against trials" src="data:image/png;base64,{image}">
<h2>Dispatches</h2>
<table><tr><th>dispatch</th><th>calls</th><th>untuned</th><th>tuned</th><th>speed-up (95 %)</th>
<th>decisions, or why not</th><th>trials</th><th>failed</th></tr>
{rows}
</table></body></html>
"""


def _row(dispatch: DispatchResult) -> str:
    what = dispatch.note
    if dispatch.tuned is not None:
        what = f"{dispatch.sketch}: {decisions(dispatch.decisions or {})}"
    numbers = (dispatch.weight, median(dispatch.untuned), median(dispatch.tuned), speedup(dispatch.tuned))
    cells = "".join(f'<td class="number">{_escape(str(text))}</td>' for text in numbers)
    return (
        f"<tr><td><code>{_escape(dispatch.name)}</code><br>{_escape(dispatch.description)}</td>{cells}"
        f'<td>{_escape(what)}</td><td class="number">{dispatch.trials}</td>'
        f"<td>{_escape(failures(dispatch.failures or {}))}</td></tr>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 48 else name[:47] + "…"


def _escape(text: str) -> str:
    return html.escape(text)
