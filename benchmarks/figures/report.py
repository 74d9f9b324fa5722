"""What follows from the results of operators, as lines for the reader: means over the operators, and notes."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import geometric_mean, median

from benchmarks.figures.rows import CALLS, KERNELS, PLAIN_CALLER, Against, Row
from benchmarks.operators.programs import TUNED
from benchmarks.peers.tuning import Tuning
from mlir_sched.text import seconds

ORDER = (
    "IREE default",
    "IREE O3",
    "IREE data-tiling",
    "IREE fused-padding",
    "TVM MetaSchedule",
    "torch eager",
    "torch compile",
    TUNED,
)


def views_of(rows: Sequence[Row]) -> list[str]:
    """Return the names of the tables: whole calls first."""
    return [name for name in (CALLS, KERNELS, PLAIN_CALLER) if any(name in row.views for row in rows)]


def labels_of(rows: Sequence[Row]) -> list[str]:
    """Return the labels of all columns that occur in the rows, in the order of the table."""
    present = {label for row in rows for label in row.calls.columns}
    return [*(label for label in ORDER if label in present), *sorted(present - set(ORDER))]


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Return the lines under the tables: the means of all views and of tuning, and the notes."""
    means = [line for name in views_of(rows) for line in means_of(rows, name)]
    return [*means, *tuning_means_of(rows), *notes_of(rows)]


def notes_of(rows: Sequence[Row]) -> list[str]:
    """Return the notes that a reader of the tables needs, one line each."""
    return [
        *_about_the_times(rows),
        *_about_the_ceiling(rows),
        *(f"empty call of {name}: {low} to {high}" for name, low, high in _empty_calls(rows)),
        *(
            f"{row.name}: no kernel time of {label}: {why}"
            for row in rows
            for label, why in row.kernels.unresolved.items()
        ),
        *_without_repetition(rows),
    ]


def means_of(rows: Sequence[Row], name: str) -> list[str]:
    """Return lines with mlir-sched's time relative to other columns', over the rows of a view that have both."""
    lines = []
    others = [label for label in labels_of(rows) if label != TUNED]
    groups = {
        "the best other": others,
        "the best of IREE": [label for label in others if label.startswith("IREE")],
        "the better of PyTorch": [label for label in others if label.startswith("torch")],
        **{label: [label] for label in others},
    }
    views = {row.name: row.views[name] for row in rows if name in row.views}
    for title, labels in groups.items():
        found = {row: against for row, view in views.items() if (against := view.against(labels)) is not None}
        if found:
            mean = 1 / geometric_mean([against.ratio for against in found.values()])
            lines.append(f"{name}, time relative to {title}: {mean:.2f} (geometric mean; {_counts(found)})")
        left_out = [row for row, view in views.items() if not view.unresolved.keys().isdisjoint({*labels, TUNED})]
        if left_out and title == "the best other":
            lines.append(f"{name}, not in the mean, as kernels cannot be told from calls: {', '.join(left_out)}")
    return lines


def tuning_means_of(rows: Sequence[Row]) -> list[str]:
    """Return lines with mlir-sched's tuning time relative to others', from the median over the seeds of each row."""
    lines = []
    searched = {label for row in rows for label, tunings in row.tuning.items() if any(t.trials for t in tunings)}
    for label in sorted(searched - {TUNED}):
        both = [row.tuning for row in rows if label in row.tuning and TUNED in row.tuning]
        if both:
            mean = geometric_mean([_seconds(tuning[TUNED]) / _seconds(tuning[label]) for tuning in both])
            lines.append(f"tuning time relative to {label}: {mean:.2f} (geometric mean; rows: {len(both)})")
    return lines


def _about_the_times(rows: Sequence[Row]) -> Iterator[str]:
    sessions = max(len(row.sessions) for row in rows)
    yield "a ratio is the fastest other time divided by mlir-sched's; above 1: mlir-sched is faster"
    if sessions == 1:
        yield "one seed: ranges are 95 % intervals of timing; what another seed or day would give is not in them"
    else:
        yield f"{sessions} seeds, each in a session of its own: times are the medians, ranges the least and the most"
        yield "~ the two ranges overlap: one bad day of either explains the difference"


def _about_the_ceiling(rows: Sequence[Row]) -> Iterator[str]:
    peaks = [row.roofline.flops_per_s / 1e9 for row in rows]
    rates: dict[str, list[float]] = {}
    for level in (level for row in rows for level in row.roofline.levels):
        rates.setdefault(level.name, []).append(level.bytes_per_s / 1e9)
    levels = ", ".join(f"{name} {_range(min(found), max(found))} GB/s" for name, found in rates.items())
    cores = ", ".join(map(str, rows[0].roofline.cores))
    peak = _range(min(peaks), max(peaks))
    yield f"roofline: peaks of cores {cores} as measured beside each row: {peak} GFLOP/s in f32, {levels}"
    for row in rows:
        for name in row.views:
            share = row.of_roofline(name)
            if share is not None and share > 1:
                yield f"! {row.name} is at {share:.1%} of the roofline ({name}): {row.bound} was measured too low"


def _empty_calls(rows: Sequence[Row]) -> Iterator[tuple[str, str, str]]:
    times: dict[str, list[float]] = {}
    for session in (session for row in rows for session in row.sessions):
        for samples in session.samples:
            if samples.timed.empty:
                name = samples.timed.label or samples.timed.peer
                times.setdefault(name, []).append(samples.interval.median)
    return ((name, seconds(min(found)), seconds(max(found))) for name, found in times.items())


def _without_repetition(rows: Sequence[Row]) -> Iterator[str]:
    by_note: dict[str, list[str]] = {}
    for row in rows:
        for note in row.notes:
            by_note.setdefault(note, []).append(row.name)
    return (f"{note} ({', '.join(names)})" if len(names) < len(rows) else note for note, names in by_note.items())


def _counts(found: Mapping[str, Against]) -> str:
    faster = sum(against.low > 1 and not against.one_day for against in found.values())
    slower = sum(against.high < 1 and not against.one_day for against in found.values())
    return f"rows: {len(found)}, faster on {faster}, slower on {slower}"


def _seconds(tunings: Sequence[Tuning]) -> float:
    return median(tuning.seconds for tuning in tunings)


def _range(low: float, high: float) -> str:
    return f"{low:.0f}" if round(low) == round(high) else f"{low:.0f} to {high:.0f}"
