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

from mlir_sched.text import durations, failures, median, phases, seconds, speedup
from mlir_sched.tuned_folder.installation import replace_file
from mlir_sched.tuned_folder.result import DispatchResult, TuneResult

CURVE, REPORT = "curve.png", "report.html"
CURVES_SHOWN = 10
"""Most dispatches in the picture, which shows those that gained most."""

_STYLE = """
:root { color-scheme: light dark; --text: #222; --back: #fff; --line: #ccc; --bar: #9ab; --best: #2a7 }
@media (prefers-color-scheme: dark) {
  :root { --text: #ddd; --back: #181818; --line: #444; --bar: #567; --best: #2a7 }
}
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
body { color: var(--text); background: var(--back); overflow-wrap: anywhere }
.wide { overflow-x: auto } table { border-collapse: collapse; overflow-wrap: normal }
td, th { border: 1px solid var(--line); padding: .3em .6em; text-align: left; vertical-align: top }
td.number { text-align: right; white-space: nowrap } code { font-size: 90% }
img { max-width: 100%; background: #fff }
.bars { display: grid; grid-template-columns: max-content 1fr; gap: .2em .8em; align-items: center }
.bar { background: var(--bar); height: 1em; min-width: 1px } .best { background: var(--best) }
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
    ordered = sorted(result.dispatches, key=lambda dispatch: -dispatch.seconds_per_run)
    rows = "\n".join(map(_row, ordered))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    interrupted = " It was interrupted." if result.interrupted else ""
    took = durations(result.seconds, result.run_seconds)
    failed = f"<p>Failed candidates: {_escape(failures(result.failures))}.</p>" if result.failures else ""
    left_out = "; ".join(f"{name}: {why}" for name, why in result.left_out.items())
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_escape(Path(result.model).name)}</title>
<style>{_STYLE}</style></head><body>
<h1>{_escape(result.model)}</h1>
<p>Whole program: untuned {seconds(program.untuned.median_s)}, tuned {seconds(program.tuned.median_s)}:
<b>{speedup(program.tuned)}</b>{"" if program.gained else " (no gain)"}, flags of the variant
{_escape(program.variant)}, numbers {"checked" if program.verified else "not checked"}.{_coverage(result)}</p>
<div class="bars">{_bars(result)}</div>
<p>{result.trials} trials in {took}, {result.measured} measured now, seed {result.seed},
{result.threads} thread(s), {_escape(result.target)} on {_escape(program.device)}, {_escape(versions)}.{interrupted}</p>
<p>Where the time of this process went: {_escape(phases(result.phases))}.</p>
{failed}{f"<p>Program variants left out: {_escape(left_out)}.</p>" if left_out else ""}
<h2>Best so far against trials</h2>
<img alt="Best speed-up so far against trials" src="data:image/png;base64,{image}">
<h2>Dispatches, those that take most time first</h2>
<div class="wide"><table><tr><th>dispatch</th><th>calls</th><th>share before</th><th>untuned</th><th>tuned</th>
<th>per run now</th><th>speed-up (95 %)</th><th>decisions, or why not</th><th>trials</th><th>failed</th></tr>
{rows}
</table></div></body></html>
"""


def _coverage(result: TuneResult) -> str:
    if result.tunable_share is None:
        return ""
    return f" {result.tunable_share:.1%} of the untuned program's time is in dispatches that can have scripts."


def _bars(result: TuneResult) -> str:
    """Return a bar per program: every untuned variant, and the tuned program."""
    program = result.program
    times = {name: program.untuned.median_s / ratio for name, ratio in program.variants.items() if ratio > 0}
    times["tuned"] = program.tuned.median_s
    longest = max(times.values())
    return "".join(
        f"<span>{_escape(name)}, {seconds(time_s)}</span>"
        f'<div class="bar{" best" if name == "tuned" else ""}" style="width: {100 * time_s / longest:.1f}%"></div>'
        for name, time_s in times.items()
    )


def _row(dispatch: DispatchResult) -> str:
    share = "-" if dispatch.share is None else f"{dispatch.share:.1%}"
    now = seconds(dispatch.seconds_per_run) if dispatch.seconds_per_run else "-"
    times = (median(dispatch.untuned), median(dispatch.tuned), now, speedup(dispatch.tuned))
    cells = "".join(f'<td class="number">{_escape(str(text))}</td>' for text in (dispatch.weight, share, *times))
    return (
        f"<tr><td><code>{_escape(dispatch.name)}</code><br>{_escape(dispatch.description)}</td>{cells}"
        f'<td>{_escape(dispatch.what_changed)}</td><td class="number">{dispatch.trials}</td>'
        f"<td>{_escape(failures(dispatch.failures or {}))}</td></tr>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 48 else name[:47] + "…"


def _escape(text: str) -> str:
    return html.escape(text)
