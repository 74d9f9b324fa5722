"""The progress of a running ``tune`` on stderr: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mlir_sched.text import console, duration, failures
from mlir_sched.tuning.progress import Progress, ProgressCallback

SHOWN = 10
"""Dispatches that the live view lists; those with the largest speed-up come first."""
LINE_EVERY_S = 2.0
"""Seconds between two plain lines of the same stage."""


class LiveProgress:
    """A view that changes in place, below the notes, called with every state."""

    def __init__(self, output: Console) -> None:
        self._output = output
        self(Progress("starting"))

    def __call__(self, progress: Progress) -> None:
        """Show a state."""
        self._state, self._seen = progress, time.monotonic()
        _print_note(self._output, progress)

    def rendered(self) -> RenderableType:
        """Return the last state, with the seconds since then."""
        state, waited = self._state, time.monotonic() - self._seen
        line = Table.grid(padding=(0, 2))
        line.add_row(Text(state.stage, style="bold"), _bar(state, waited), _counts(state, waited))
        best = [Text(f"  {ratio:5.2f}x  {name}") for name, ratio in _best(state)[:SHOWN]]
        if len(state.best) > SHOWN:
            best.append(Text(f"  and {len(state.best) - SHOWN} more dispatches"))
        failed = [Text(f"  failed: {failures(state.failures)}", style="dim")] if state.failures else []
        return Group(line, *best, *failed)


class PlainProgress:
    """One line per stage and, every few seconds, per round; called with every state."""

    def __init__(self, output: Console) -> None:
        self._output = output
        self._stage = ""
        self._printed = 0.0

    def __call__(self, progress: Progress) -> None:
        """Print a state, unless the last line of its stage is too recent."""
        _print_note(self._output, progress)
        now = time.monotonic()
        if progress.stage == self._stage and now - self._printed < LINE_EVERY_S:
            return
        self._stage, self._printed = progress.stage, now
        parts = [progress.stage, _counts(progress, 0.0)]
        parts += [f"best {ratio:.2f}x {name}" for name, ratio in _best(progress)[:3]]
        parts += [f"failed: {failures(progress.failures)}"] if progress.failures else []
        self._output.print("; ".join(part for part in parts if part), soft_wrap=True)


@contextmanager
def progress_view() -> Iterator[ProgressCallback]:
    """Yield the view that suits stderr."""
    output = console(stderr=True)
    if not output.is_terminal:
        yield PlainProgress(output)
        return
    live = LiveProgress(output)
    with Live(console=output, get_renderable=live.rendered, refresh_per_second=2, transient=True):
        yield live


def _print_note(output: Console, progress: Progress) -> None:
    if progress.note:
        output.print(f"note: {progress.note}", soft_wrap=True)


def _best(state: Progress) -> list[tuple[str, float]]:
    return sorted(state.best.items(), key=lambda item: -item[1])


def _bar(state: Progress, waited: float) -> RenderableType:
    if state.total:
        return ProgressBar(total=state.total, completed=state.trials, width=30)
    if state.left_s is None:
        return Text("")
    return ProgressBar(total=state.elapsed_s + state.left_s, completed=state.elapsed_s + waited, width=30)


def _counts(state: Progress, waited: float) -> str:
    if not state.trials:
        return duration(state.elapsed_s + waited) if state.elapsed_s or waited else ""
    trials = f"{state.trials}/{state.total} trials" if state.total else f"{state.trials} trials"
    left = "" if state.left_s is None else f", {duration(max(0.0, state.left_s - waited))} left"
    return f"{trials}, {duration(state.elapsed_s + waited)}{left}"
