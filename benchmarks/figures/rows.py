"""The figures of an operator over its sessions, as data that tables, JSON and chart share."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from benchmarks.figures.roofline import Roofline, highest
from benchmarks.figures.sampling import Samples, Unresolved, kernel_time, ratio
from benchmarks.operators.programs import TUNED
from benchmarks.peers.tuning import Tuning

IREE = "iree"
PLAIN = "iree-plain"
"""Peer of IREE's programs called by a thread that does not yield to IREE's workers."""
SYNC = "iree-local-sync"
"""Peer of IREE's programs that run on the calling thread, in runs where the other peers use several threads."""

CALLS, KERNELS, PLAIN_CALLER = "whole calls", "kernel time", "whole calls, plain caller of IREE"


@dataclass(frozen=True)
class Session:
    """The results of one operator with one seed: every framework tuned and started afresh, all sampled in turns.

    Attributes:
        seed: Seed of the searches and of the order of samples.
        samples: The samples of all ways, empty calls included.
        tuning: Trials and seconds of tuning, by column.
        notes: What is missing and why, one sentence each.
        flops, moved_bytes: Operations that the operator has to do, and bytes that it has to move.
        roofline: The ceilings of the cores, measured right after the samples.
    """

    seed: int
    samples: tuple[Samples, ...]
    tuning: Mapping[str, Tuning]
    notes: tuple[str, ...]
    flops: int
    moved_bytes: int
    roofline: Roofline

    def empty_of(self, call: Samples) -> Samples:
        """Return the samples of the empty call that belongs to the column of a call."""
        of_peer = (each for each in self.samples if each.timed.empty and each.timed.peer == call.timed.peer)
        empties = {each.timed.label: each for each in of_peer}
        return empties.get(call.timed.label) or empties[""]


@dataclass(frozen=True)
class Column:
    """The fastest way of one framework or variant in every session.

    Attributes:
        samples: Samples of this way by number of the session.
    """

    samples: Mapping[int, Samples]

    @property
    def sessions_s(self) -> tuple[float, ...]:
        """Median seconds per call of every session."""
        return tuple(samples.interval.median for samples in self.samples.values())

    @property
    def time_s(self) -> float:
        """Seconds per call: the median of the sessions."""
        return median(self.sessions_s)

    @property
    def range_s(self) -> tuple[float, float]:
        """Least and most of the sessions' medians; for one session its 95 % interval, which shows timing noise only."""
        if len(self.samples) > 1:
            return min(self.sessions_s), max(self.sessions_s)
        (one,) = self.samples.values()
        return one.interval.low, one.interval.high

    @property
    def details(self) -> tuple[str, ...]:
        """Details of the ways that were the fastest in some session, each once."""
        return tuple(dict.fromkeys(s.timed.detail for s in self.samples.values() if s.timed.detail))

    @property
    def disturbed(self) -> int:
        """Samples during which the cores were shared."""
        return sum(samples.quiet.count(False) for samples in self.samples.values())

    def to_json(self) -> dict[str, Any]:
        names = ("time_s", "range_s", "sessions_s", "details", "disturbed")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Against:
    """A column's time divided by mlir-sched's; above 1 means that mlir-sched is faster.

    Attributes:
        label: The column's label.
        ratio: Ratio of the two times that the table shows.
        low, high: Least and most of the sessions' ratios; for one session its 95 % interval.
        one_day: Whether the ranges of the two columns over several sessions overlap: one bad day of either column can
            explain the difference.
    """

    label: str
    ratio: float
    low: float
    high: float
    one_day: bool

    def __str__(self) -> str:
        return f"{self.ratio:.2f} ({self.low:.2f} to {self.high:.2f}){' ~' if self.one_day else ''}"


@dataclass(frozen=True)
class View:
    """The times of a row under one definition of time, such as whole calls.

    Attributes:
        columns: Columns by label; a note of the row explains why a column is missing.
        unresolved: By label, the reason why a column that the row has does not have a time in this view.
    """

    columns: Mapping[str, Column]
    unresolved: Mapping[str, str] = field(default_factory=dict)

    def fastest(self, labels: Iterable[str]) -> str | None:
        """Return the label of the fastest of some columns, mlir-sched's excluded; None when no such column exists."""
        others = [label for label in labels if label != TUNED and label in self.columns]
        return min(others, key=lambda label: self.columns[label].time_s, default=None)

    def against(self, labels: Iterable[str]) -> Against | None:
        """Return the fastest of some columns against mlir-sched; None if either is missing or any is unresolved."""
        labels = tuple(labels)
        label = self.fastest(labels)
        if label is None or TUNED not in self.columns or not self.unresolved.keys().isdisjoint(labels):
            return None
        return _against(label, self.columns[label], self.columns[TUNED])

    @property
    def best_peer(self) -> str | None:
        """Label of the fastest of all columns except mlir-sched's."""
        return self.fastest(self.columns)

    @property
    def shown(self) -> str | None:
        """The column that the roofline is compared with: mlir-sched's, or the fastest where nothing was tuned."""
        if TUNED in self.columns or TUNED in self.unresolved:
            return TUNED if TUNED in self.columns else None
        return self.best_peer

    def to_json(self) -> dict[str, Any]:
        columns = {label: column.to_json() for label, column in self.columns.items()}
        return {"columns": columns, "unresolved": dict(self.unresolved)}


@dataclass(frozen=True)
class Row:
    """The results of one operator.

    Attributes:
        name: The operator's name.
        views: Views by name: :data:`CALLS`, :data:`KERNELS` and, where it was measured, :data:`PLAIN_CALLER`.
        roofline: The ceilings of the cores: each is the highest of the sessions.
        floor_s: Least seconds of a call under these ceilings.
        bound: The ceiling that gives ``floor_s``: FMA or a level of the memory.
        sessions: The sessions from which the views are made.
    """

    name: str
    views: Mapping[str, View]
    roofline: Roofline
    floor_s: float
    bound: str
    sessions: tuple[Session, ...]

    @property
    def calls(self) -> View:
        """Whole calls, as a user makes them."""
        return self.views[CALLS]

    @property
    def kernels(self) -> View:
        """Calls less the time of the framework's empty call."""
        return self.views[KERNELS]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of all sessions on what is missing and why, each once."""
        return tuple(dict.fromkeys(note for session in self.sessions for note in session.notes))

    @property
    def tuning(self) -> dict[str, tuple[Tuning, ...]]:
        """Trials and seconds of tuning in every session, by label."""
        labels = dict.fromkeys(label for session in self.sessions for label in session.tuning)
        return {label: tuple(s.tuning[label] for s in self.sessions if label in s.tuning) for label in labels}

    def of_roofline(self, name: str) -> float | None:
        """Return the share of the roofline that mlir-sched reaches in a view, or without it the fastest column.

        The roofline is made of measured peaks: a share above 1 means that a peak was measured too low. None if the
        view has no time of mlir-sched although the program was tuned, or no time at all.
        """
        view = self.views[name]
        return None if view.shown is None else self.floor_s / view.columns[view.shown].time_s

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "views": {name: view.to_json() for name, view in self.views.items()},
            "of_roofline": {name: self.of_roofline(name) for name in self.views},
            "roofline": asdict(self.roofline),
            "floor_s": self.floor_s,
            "bound": self.bound,
            "sessions": [asdict(session) for session in self.sessions],
        }


def row_of(name: str, sessions: Sequence[Session]) -> Row:
    """Return the row of an operator from its sessions."""
    roofline = highest([session.roofline for session in sessions])
    floor_s, bound = roofline.seconds(sessions[0].flops, sessions[0].moved_bytes)
    calls = _columns(sessions, without=PLAIN)
    views = {CALLS: View(calls), KERNELS: _kernels(calls, sessions)}
    if any(s.timed.peer == PLAIN for session in sessions for s in session.samples):
        views[PLAIN_CALLER] = View(_columns(sessions, without=IREE))
    return Row(name, views, roofline, floor_s, bound, tuple(sessions))


def _columns(sessions: Sequence[Session], *, without: str) -> dict[str, Column]:
    """Return the columns of all peers except one."""
    fastest: dict[str, dict[int, Samples]] = {}
    for number, session in enumerate(sessions):
        for one in session.samples:
            if one.timed.empty or one.timed.peer == without:
                continue
            known = fastest.setdefault(one.timed.label, {})
            if number not in known or one.interval.median < known[number].interval.median:
                known[number] = one
    return {label: Column(samples) for label, samples in fastest.items()}


def _kernels(calls: Mapping[str, Column], sessions: Sequence[Session]) -> View:
    columns, unresolved = {}, {}
    for label, column in calls.items():
        try:
            columns[label] = Column({n: kernel_time(s, sessions[n].empty_of(s)) for n, s in column.samples.items()})
        except Unresolved as reason:
            unresolved[label] = str(reason)
    return View(columns, unresolved)


def _against(label: str, other: Column, own: Column) -> Against:
    both = [number for number in own.samples if number in other.samples]
    found = [ratio(other.samples[number], own.samples[number]) for number in both]
    if len(found) == 1:
        low, high = found[0].low, found[0].high
    else:
        ratios = [interval.median for interval in found] or [other.time_s / own.time_s]
        low, high = min(ratios), max(ratios)
    several = min(len(other.samples), len(own.samples)) > 1
    overlap = other.range_s[0] <= own.range_s[1] and own.range_s[0] <= other.range_s[1]
    return Against(label, other.time_s / own.time_s, low, high, several and overlap)
