"""``mlir-sched replay``: prints whether a tuned folder still holds."""

from collections.abc import Sequence
from pathlib import Path

from mlir_sched.cli.exit import DONE, OUR_FAULT, Output
from mlir_sched.cli.progress import progress_view
from mlir_sched.cli.tune import encoding_command, loading_lines
from mlir_sched.outcome import Verdict
from mlir_sched.replaying.replay import replay
from mlir_sched.replaying.replay_result import ReplayedSequence, ReplayResult
from mlir_sched.replaying.script_state import ScriptState
from mlir_sched.space.user_modules import load_modules
from mlir_sched.text import console, numbers, say, seconds, speedup, table


def run_replay(
    tuned: Path,
    model: Path,
    modules: Sequence[str],
    parameters: Sequence[str],
    target: str,
    target_description: Path | None,
    folder: Path | None,
    inputs: Sequence[str],
    reference: Sequence[str],
    output: Output,
) -> int:
    """Replay a tuned folder, write a folder with it if one is named, and print the result; return the exit code."""
    loaded = load_modules(modules)
    with progress_view() as progress:
        result = replay(
            tuned,
            model,
            modules=loaded,
            parameters=parameters,
            target=target,
            target_description=target_description,
            output=folder,
            inputs=inputs,
            reference=reference,
            progress=progress,
        )
    output.show(result.to_json, lambda: print_result(result, folder, parameters))
    return DONE if result.holds else OUR_FAULT


def print_result(result: ReplayResult, folder: Path | None, parameters: Sequence[str]) -> None:
    """Print the table per sequence, the program, what does not hold, and whether a folder was written."""
    made = table("dispatch", "script", "applies", "right", "speed-up then", "speed-up now (95 %)", "holds")
    for sequence in result.sequences:
        made.add_row(*_row(sequence))
    if result.sequences:
        console().print(made)
    by_hand = (ScriptState.EDITED, ScriptState.HAND_WRITTEN)
    lines = [f"the whole program: {result.state}: {result.note}"] if result.state in by_hand else []
    lines += [f"@{s.symbol}: {s.state}: {s.note}" for s in result.sequences if s.state in by_hand]
    if result.untuned is not None and result.program is not None:
        then = "unknown" if result.then is None else f"{result.then:.2f}x"
        lines.append(
            f"whole program: untuned {seconds(result.untuned.median_s)}, tuned {seconds(result.program.median_s)}, "
            f"{speedup(result.program)}; then {then}; {numbers(result.verdict, result.inside)}"
        )
    lines += loading_lines(result.loading, encoding_command(result.model, result.tuned, parameters))
    lines += [f"note: {note}" for note in result.notes]
    lines += [f"does not hold: {problem}" for problem in result.all_problems] or ["everything holds"]
    if folder is not None:
        lines.append(f"wrote {folder}" if result.is_right else f"{folder} was not written")
    say(*lines)


_RIGHT = {Verdict.RIGHT: "yes", Verdict.WRONG: "no", Verdict.NOT_CHECKED: "not checked"}


def _row(sequence: ReplayedSequence) -> tuple[str, ...]:
    applies = "not tried" if sequence.applied is None else f"{sequence.applied}x" if sequence.applied else "no"
    return (
        sequence.dispatch or sequence.symbol,
        sequence.state.value,
        applies,
        _RIGHT[sequence.verdict],
        sequence.then or "-",
        speedup(sequence.timing),
        "no" if sequence.problems else "yes" if sequence.is_needed else "-",
    )
