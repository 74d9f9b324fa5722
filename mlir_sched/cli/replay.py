"""``mlir-sched replay``: prints whether a tuned folder still holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mlir_sched.cli.exit import DONE, OUR_FAULT, Output
from mlir_sched.cli.progress import progress_view
from mlir_sched.replaying.replay import ReplayedStrategy, ReplayResult, replay
from mlir_sched.replaying.script_state import ScriptState
from mlir_sched.space.user_modules import load_modules
from mlir_sched.text import console, seconds, speedup, table


def run_replay(tuned: Path, model: Path, modules: Sequence[str], parameters: Sequence[str], output: Output) -> int:
    """Replay a tuned folder and print the result; return the exit code."""
    loaded = load_modules(modules)
    with progress_view() as progress:
        result = replay(tuned, model, modules=loaded, parameters=parameters, progress=progress)
    if output.as_json:
        output.document(result.to_json())
    else:
        print_result(result)
    return DONE if result.holds else OUR_FAULT


def print_result(result: ReplayResult) -> None:
    """Print the table per strategy, the program, and what does not hold."""
    out = console()
    made = table("dispatch", "script", "applies", "right", "speed-up then", "speed-up now (95 %)", "holds")
    for strategy in result.strategies:
        made.add_row(*_row(strategy))
    if result.strategies:
        out.print(made)
    by_hand = (ScriptState.EDITED, ScriptState.HAND_WRITTEN)
    lines = [f"@{s.symbol}: {s.state}: {s.note}" for s in result.strategies if s.state in by_hand]
    if result.untuned is not None and result.program is not None:
        then = "unknown" if result.then is None else f"{result.then:.2f}x"
        lines.append(
            f"whole program: untuned {seconds(result.untuned.median_s)}, tuned {seconds(result.program.median_s)}, "
            f"{speedup(result.program)}; then {then}; numbers checked"
        )
    lines += [f"note: {note}" for note in result.notes]
    lines += [f"does not hold: {problem}" for problem in result.all_problems] or ["everything holds"]
    for line in lines:
        out.print(line, soft_wrap=True)


def _row(strategy: ReplayedStrategy) -> tuple[str, ...]:
    applies = "not tried" if strategy.applied is None else f"{strategy.applied}x" if strategy.applied else "no"
    return (
        strategy.dispatch or strategy.symbol,
        strategy.state.value,
        applies,
        "yes" if strategy.timing else "no" if strategy.applied else "-",
        strategy.then or "-",
        speedup(strategy.timing),
        "no" if strategy.problems else "yes",
    )
