"""The part of the report that says why every script won."""

from collections.abc import Sequence
from html import escape

from mlir_sched.text import decisions, value
from mlir_sched.tuned_folder.decision_worth import Ablation, Alternative, DecisionWorth, RelativeSpeed, SketchWorth
from mlir_sched.tuned_folder.result import DispatchResult

MEANING = """The worth of a decision is the cost of giving the decision up: the time of the fastest candidate of the
search that has another value for the decision, relative to the time of the script. Where other decisions differ, too,
the cost is that of all changes together. Nothing was measured for these tables: both times are from the search, and the
brackets hold the costs that their intervals allow. The script was chosen for its time, and its rival is the fastest of
several, so that a difference of a few percent may be chance."""

NAMED = 3
"""Most decisions that are named where a candidate changes further ones; ``summary.json`` has all of them."""


def ablation_section(dispatches: Sequence[DispatchResult]) -> str:
    """Return the part as HTML, a block per dispatch with a script that opens on a click; empty without scripts."""
    blocks = [_block(dispatch, dispatch.ablation) for dispatch in dispatches if dispatch.ablation is not None]
    return f"<h2>Why each script won</h2>\n<p>{MEANING}</p>\n" + "\n".join(blocks) if blocks else ""


def _block(dispatch: DispatchResult, ablation: Ablation) -> str:
    decided = _table(
        ("decision", "fastest with another value", "fastest with nothing else changed"),
        [_decision_row(worth) for worth in ablation.decisions],
    )
    again = f"; measured again for the table above,\n{dispatch.speedup:.2f}x"
    if dispatch.tuned is not None and dispatch.tuned.is_estimated:
        again = " by the estimates"
    return f"""<details><summary><code>{escape(dispatch.name)}</code>: {escape(dispatch.sketch)}</summary>
<p>In the search the script was {ablation.ratio:.2f}x as fast as the untuned code{again}.</p>
{decided}
{_sketches(ablation.sketches)}</details>"""


def _sketches(sketches: Sequence[SketchWorth]) -> str:
    heads = ("other sketch", "its fastest candidate", "decisions of this candidate")
    rows = [_sketch_row(worth) for worth in sketches]
    return _table(heads, rows) if rows else "<p>The dispatch has no other sketch.</p>"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = (f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in rows)
    head = "".join(f"<th>{name}</th>" for name in heads)
    return f'<div class="wide"><table><tr>{head}</tr>\n' + "\n".join(lines) + "\n</table></div>"


def _decision_row(worth: DecisionWorth) -> tuple[str, ...]:
    alone = "-" if worth.alone is None else _changed(worth.name, worth.alone)
    return f"{worth.name} {value(worth.value)}", _fastest(worth), alone


def _fastest(worth: DecisionWorth) -> str:
    """Return the fastest candidate with another value of a decision, or why there is none."""
    if worth.best is not None:
        return f"{_changed(worth.name, worth.best)}, {_rank(worth)}; {_others(worth.name, worth.best)}"
    if worth.failed:
        return f"{worth.failed} tried, none valid"
    return "the other decisions leave no other value" if worth.fixed else "none tried"


def _others(name: str, alternative: Alternative) -> str:
    """Return how many other decisions an alternative changes, with their names where they are few."""
    others = [other for other in alternative.changes if other != name]
    if not others:
        return "nothing else changed"
    return f"{len(others)} more changed" + (f": {', '.join(others)}" if len(others) <= NAMED else "")


def _sketch_row(worth: SketchWorth) -> tuple[str, ...]:
    if worth.best is None:
        return worth.name, f"{worth.failed} tried, none valid" if worth.failed else "none tried", "-"
    chosen = {name: decided for name, decided in worth.best.changes.items() if decided is not None}
    return worth.name, f"{_cost(worth.best)}, {_rank(worth)}", decisions(chosen)


def _rank(worth: DecisionWorth | SketchWorth) -> str:
    return f"fastest of {worth.measured}" if worth.measured > 1 else "the only one"


def _changed(name: str, alternative: Alternative) -> str:
    """Return the value of a decision in an alternative, and what it costs."""
    chosen = alternative.changes[name]
    return f"{'-' if chosen is None else value(chosen)}: {_cost(alternative)}"


def _cost(alternative: Alternative) -> str:
    if alternative.verdict is RelativeSpeed.SAME_CODE:
        return str(alternative.verdict)
    verdict = "" if alternative.verdict is RelativeSpeed.SLOWER else f"{alternative.verdict}, "
    return f"{verdict}{alternative.cost:.2f}x the time ({alternative.cost_low:.2f} to {alternative.cost_high:.2f})"
