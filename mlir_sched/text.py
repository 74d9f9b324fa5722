"""The command line's way of writing numbers, decisions and tables."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from mlir_sched.outcome import Timing, Verdict
from mlir_sched.sampling import Value

PLAIN_WIDTH = 160
"""Columns of tables that do not go to a terminal."""


def console(*, stderr: bool = False) -> Console:
    """Return a console; where there is no terminal, lines are long and without colour."""
    found = Console(stderr=stderr, highlight=False, markup=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, markup=False, width=PLAIN_WIDTH)


def say(*lines: str) -> None:
    """Print lines, however long they are, each on a line of its own."""
    for line in lines:
        console().print(line, soft_wrap=True)


def table(*columns: str, title: str = "") -> Table:
    """Return an empty table; a column whose name starts with ``>`` holds numbers."""
    made = Table(title=title or None, title_justify="left", title_style="bold")
    for name in columns:
        made.add_column(name.removeprefix(">"), justify="right" if name.startswith(">") else "left", overflow="fold")
    return made


def seconds(value: float) -> str:
    """Return a duration with three digits: ``1.23 ms``."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"


def mebibytes(size: int) -> str:
    """Return a size in bytes with one decimal: ``97.5 MiB``."""
    return f"{size / 2**20:.1f} MiB"


def median(timing: Timing | None) -> str:
    """Return the median of a timing, or a dash."""
    return "-" if timing is None else seconds(timing.median_s)


def speedup(timing: Timing | None) -> str:
    """Return a speed-up with its 95 % interval, ``1.05x (1.03 to 1.06)``, or a dash."""
    if timing is not None and timing.is_estimated:
        return f"{timing.ratio:.2f}x (estimated)"
    return "-" if timing is None else f"{timing.ratio:.2f}x ({timing.ratio_low:.2f} to {timing.ratio_high:.2f})"


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a number of things: ``1 task``, ``2 tasks``; the plural of a noun takes an s where none is given."""
    return f"{count} {noun if count == 1 else plural or noun + 's'}"


def numbers(verdict: Verdict, inside: Sequence[str]) -> str:
    """Return a verdict on a program, with what was compared where it was verified inside.

    Args:
        inside: Dispatches whose results were compared, once per result.
    """
    if not inside:
        return verdict.words
    results, dispatches = len(inside), len(set(inside))
    return f"{verdict.words} inside: {counted(results, 'result')} of {counted(dispatches, 'dispatch', 'dispatches')}"


def changed_decisions(values: Mapping[str, Value], emitted: Mapping[str, Value] | None) -> str:
    """Return the decisions that differ from the emitted ones, ``rows 8 -> 16``; empty where those are not known."""
    differing = [] if emitted is None else [name for name in values if emitted.get(name) != values[name]]
    return ", ".join(f"{name} {value((emitted or {}).get(name))} -> {value(values[name])}" for name in differing)


def duration(value: float) -> str:
    """Return a duration for a person who waits: ``1 min 20 s``."""
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def threads(count: int, *, chosen: bool = True) -> str:
    """Return a number of threads; where the user did not choose the number, also what the number is."""
    text = counted(count, "thread")
    if chosen:
        return text
    return f"{text} (the only usable core)" if count == 1 else f"{text} (all cores; --threads 1 for one)"


def durations(process_s: float, run_s: float) -> str:
    """Return the duration of a process, and of its run where earlier processes worked on the run, too."""
    earlier = run_s - process_s >= 1
    return duration(process_s) + (f" ({duration(run_s)} with earlier processes)" if earlier else "")


def phases(seconds_of: Mapping[str, float]) -> str:
    """Return the seconds of every phase of a run on one line."""
    return ", ".join(f"{name} {duration(spent)}" for name, spent in seconds_of.items())


def value(decided: Value | None) -> str:
    """Return the value of a decision: tuples joined by slashes."""
    return "/".join(map(str, decided)) if isinstance(decided, tuple | list) else str(decided)


def decisions(values: Mapping[str, Value]) -> str:
    """Return all decisions on one line."""
    return ", ".join(f"{name} {value(decided)}" for name, decided in values.items())


def failures(counts: Mapping[str, int]) -> str:
    """Return failures by class on one line, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{name} {count}" for name, count in ordered if count)
