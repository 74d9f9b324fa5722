"""The report of a run: one page without external resources, and its picture as a file."""

import base64
import html
from collections.abc import Callable, Sequence
from pathlib import Path

from mlir_sched.text import durations, failures, median, numbers, phases, seconds, speedup
from mlir_sched.tuned_folder.ablation_section import ablation_section
from mlir_sched.tuned_folder.manifest import ResultWriter, Source
from mlir_sched.tuned_folder.names import CURVE, REPORT
from mlir_sched.tuned_folder.pictures import Curve, draw_dispatches, draw_program
from mlir_sched.tuned_folder.result import DispatchResult, TuneResult

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
details { margin: .6em 0 } details .wide { margin-bottom: .8em } summary { cursor: pointer }
@media (max-width: 40em) { details td { overflow-wrap: anywhere } }
.bar { background: var(--bar); height: 1em; min-width: 1px } .best { background: var(--best) }
"""


def write_report(folder: Path, source: Source, result: TuneResult, curves: Sequence[Curve]) -> None:
    """Write the picture and the page of a run into the folder that holds its result; no picture where none is drawn."""
    picture, writer = _drawn(lambda: draw_dispatches(curves)), ResultWriter.of(folder, source)
    if picture:
        writer.write(CURVE, picture)
    else:
        writer.remove(CURVE)
    writer.write(REPORT, page(result, picture).encode())
    writer.finish()


def _drawn(draw: Callable[[], bytes]) -> bytes:
    """Return a picture; nothing where the drawing fails, which must not cost what was found."""
    try:
        return draw()
    except Exception:  # whatever a drawing library raises
        return b""


def page(result: TuneResult, picture: bytes) -> str:
    """Return the report as HTML, with the picture of the dispatches; empty for none."""
    program = result.program
    ordered = sorted(result.dispatches, key=lambda dispatch: -dispatch.seconds_per_run)
    rows = "\n".join(map(_row, ordered))
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    interrupted = " It was interrupted." if result.interrupted else ""
    interrupted += f" The search stopped: {_escape(result.stopped)}." if result.stopped else ""
    interrupted += f" The search ended early: {_escape(result.ended_early)}." if result.ended_early else ""
    took = durations(result.seconds, result.run_seconds)
    failed = f"<p>Failed candidates: {_escape(failures(result.failures))}.</p>" if result.failures else ""
    left_out = "; ".join(f"{name}: {why}" for name, why in result.left_out.items())
    how, est, interval = ("measured", "", " (95 %)") if result.measured else ("estimated", ", est.", ", est.")
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{_escape(Path(result.model).name)}</title>
<style>{_STYLE}</style></head><body>
<h1>{_escape(result.model)}</h1>
{f"<p><b>NOT MEASURED</b>: {_escape(result.not_measured)}.</p>" if result.not_measured else ""}
<p>Whole program{est}: untuned {seconds(program.untuned.median_s)}, tuned {seconds(program.tuned.median_s)}:
<b>{speedup(program.tuned)}</b>{"" if program.gained else " (no gain)"}, flags of the variant
{_escape(program.variant)}, {_escape(numbers(program.verdict, program.inside))}.
{_coverage(result)}{_loading(result)}</p>
<div class="bars">{_bars(result)}</div>
<p>{result.trials} trials in {took}, {result.evaluated} {how} now, seed {result.seed},
{result.threads} thread(s), {_escape(result.target)} on {_escape(program.device or "no device")},
{_escape(versions)}.{interrupted}
{_model_accuracy(result)}</p>
{f"<p>{_escape(result.one_shot.words)}.</p>" if result.one_shot else ""}
<p>Where the time of this process went: {_escape(phases(result.phases))}.</p>
{_transfer(result)}{f"<p>{_escape(result.predicted.words)}.</p>" if result.predicted else ""}
{failed}{f"<p>Program variants left out: {_escape(left_out)}.</p>" if left_out else ""}{_notes(result)}
{_program_curve(result)}<h2>Best so far against trials</h2>
{_image("Best speed-up so far against trials", picture)}
<h2>Dispatches, those that take most time first</h2>
<div class="wide"><table><tr><th>dispatch</th><th>calls</th><th>share before{est}</th><th>untuned{est}</th>
<th>tuned{est}</th><th>per run now{est}</th><th>speed-up{interval}</th>
<th>decisions, or why not</th><th>trials</th><th>failed</th></tr>
{rows}
</table></div>
{ablation_section(ordered)}
</body></html>
"""


def _program_curve(result: TuneResult) -> str:
    """Return the picture of the whole program, and how far the estimate is from the measurement."""
    if not result.curves:
        return ""
    return f"""<h2>Time of the program against minutes</h2>
{_image("Estimated time of the program against minutes of the run", _drawn(lambda: draw_program(result)))}
<p>{_escape(estimate_text(result))}</p>
"""


def estimate_text(result: TuneResult) -> str:
    """Return what the line of the picture of the program is, and how far its end is from the measured time."""
    if result.not_measured:
        return "The line and the marks at the end of the run are estimates of the model of the device."
    what = (
        "The line is an estimate: the times of the dispatches with the best scripts so far, each measured alone, and "
        "what the untuned program takes outside of them. The marks at the end of the run are measured."
    )
    estimated_s, measured_s = result.curves[0].estimates[-1].program_s, result.program.tuned.median_s
    if not any(dispatch.tuned for dispatch in result.dispatches):
        return f"{what} The line ends at {seconds(estimated_s)}, but the emitted program has no script."
    off = estimated_s / measured_s - 1
    far = f"{abs(off):.1%} {'more' if off > 0 else 'less'} than the emitted program takes, {seconds(measured_s)}"
    return f"{what} The line ends at {seconds(estimated_s)}, which is {far}."


def _model_accuracy(result: TuneResult) -> str:
    if result.model_accuracy is None:
        return ""
    return f"In {result.model_accuracy:.0%} of the pairs of new candidates the cost model put the faster one first."


def _transfer(result: TuneResult) -> str:
    """Return what the search began from, with a row per source that opens on a click; empty where it was nothing."""
    if result.transfer is None:
        return ""
    rows = "\n".join(
        f"<tr><td>{_escape(each.name)}</td><td>{_escape(each.description)}</td><td>{_escape(each.place)}</td>"
        f'<td>{_escape(each.processor)}</td><td class="number">{each.threads}</td>'
        f'<td class="number">{each.candidates}</td></tr>'
        for each in result.transfer.sources
    )
    return f"""<details><summary>{_escape(result.transfer.words)}</summary>
<div class="wide"><table><tr><th>dispatch</th><th>ops</th><th>from</th><th>measured on</th><th>threads</th>
<th>candidates</th></tr>
{rows}
</table></div></details>
"""


def _image(alt: str, png: bytes) -> str:
    if not png:
        return f"<p>No picture could be drawn: {alt[0].lower()}{alt[1:]}.</p>"
    return f'<img alt="{alt}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'


def _coverage(result: TuneResult) -> str:
    return f" {_escape(result.coverage)}." if result.coverage else ""


def _loading(result: TuneResult) -> str:
    loading = result.program.loading
    return "" if loading is None else f" The program {_escape(loading.words)}."


def _notes(result: TuneResult) -> str:
    notes = f"<p>Note: {_escape('; '.join(result.notes))}.</p>" if result.notes else ""
    not_run = "; ".join(f"@{name}, as {why}" for name, why in result.not_run.items())
    return notes + (f"<p>Neither run nor timed: {_escape(not_run)}.</p>" if not_run else "")


def _bars(result: TuneResult) -> str:
    """Return a bar per program: every untuned variant, and the tuned program."""
    program = result.program
    times = {name: program.untuned.median_s / ratio for name, ratio in program.variants.items() if ratio > 0}
    times["tuned"] = program.tuned.median_s
    longest, est = max(times.values()), "" if result.measured else ", est."
    return "".join(
        f"<span>{_escape(name)}, {seconds(time_s)}{est}</span>"
        f'<div class="bar{" best" if name == "tuned" else ""}" style="width: {100 * time_s / longest:.1f}%"></div>'
        for name, time_s in times.items()
    )


def _row(dispatch: DispatchResult) -> str:
    share = "-" if dispatch.share is None else f"{dispatch.share:.1%}"
    now = seconds(dispatch.seconds_per_run) if dispatch.seconds_per_run else "-"
    times = (median(dispatch.untuned), median(dispatch.tuned), now, speedup(dispatch.tuned))
    cells = "".join(f'<td class="number">{_escape(str(text))}</td>' for text in (dispatch.weight, share, *times))
    return (
        f"<tr><td><code>{_breakable(dispatch.name)}</code><br>{_escape(dispatch.description)}</td>{cells}"
        f'<td>{_escape(dispatch.what_changed)}</td><td class="number">{dispatch.trials}</td>'
        f"<td>{_escape(failures(dispatch.failures or {}))}</td></tr>"
    )


def _breakable(name: str) -> str:
    """Return the name of a dispatch as HTML that may end a line after an underscore."""
    return _escape(name).replace("_", "_<wbr>")


def _escape(text: str) -> str:
    return html.escape(text)
