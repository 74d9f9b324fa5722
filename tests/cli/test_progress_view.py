"""The progress on stderr: what is noted is printed once, above what changes."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console
from rich.live import Live

from mlir_sched.cli.progress import LiveProgress, PlainProgress
from mlir_sched.tuning.progress import Progress

STATES = (Progress("tuning"), Progress("tuning", note="1 min is short"), Progress("tuning", elapsed_s=3.0))


@pytest.mark.parametrize("terminal", [False, True])
def test_a_note_is_printed_once_and_in_full(terminal: bool) -> None:
    output = Console(file=StringIO(), force_terminal=terminal, width=40, highlight=False)
    view = LiveProgress(output) if terminal else PlainProgress(output)
    with Live(console=output, get_renderable=lambda: "", auto_refresh=False, transient=True):
        for state in STATES:
            view(state)
    assert isinstance(output.file, StringIO)
    assert output.file.getvalue().count("note: 1 min is short") == 1
