"""The figures of layouts as tables: a row per convolution, and a row per network with all its convolutions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.figures.sampling import Samples, ratio
from benchmarks.operators.blocked_channels.convolutions import ProgramConvolutions
from benchmarks.operators.blocked_channels.forms import BLOCKED, LAST, PACKED
from benchmarks.operators.blocked_channels.measurement import Found, Setting
from mlir_sched.runner.statistics import Interval, median_interval, ratio_interval

IN_TURNS, INTERVAL = "The tuned programs of a convolution in turns", "95 % interval"
OVER_LAST = "blocked over channels last"


@dataclass(frozen=True)
class Total:
    """All convolutions of a network that were measured, each as often as it occurs.

    Attributes:
        convolutions: How many there are.
        last_s, blocked_s: Seconds with channels last, each convolution in the faster way, and with blocked channels.
        over_last: Their ratio; above 1 means that blocked channels are slower.
    """

    convolutions: int
    last_s: Interval
    blocked_s: Interval
    over_last: Interval


def total_of(counts: Sequence[tuple[Found, int]]) -> Total:
    """Return the totals of convolutions that occur so often: sums of the samples of each round, over all rounds."""
    last_s = _sums([(found.last.samples, count) for found, count in counts])
    blocked_s = _sums([(found.blocked.samples, count) for found, count in counts])
    number, over_last = sum(count for _, count in counts), ratio_interval(blocked_s, last_s)
    return Total(number, median_interval(last_s), median_interval(blocked_s), over_last)


def _sums(samples: Sequence[tuple[Samples, int]]) -> list[float]:
    """Return the weighted sum of each round that all have."""
    rounds = min(len(each.calls_s) for each, _ in samples)
    return [sum(count * each.calls_s[number] for each, count in samples) for number in range(rounds)]


def networks_table(
    networks: Sequence[ProgramConvolutions], found: Mapping[str, Found], setting: Setting, publishing: Publishing
) -> ResultTable:
    """Return a table with a row per network, and what is missing in the totals as notes."""
    counts = {
        network.name: [(found[one.name], count) for one, count in network.counts.items() if one.name in found]
        for network in networks
    }
    totals = {name: total_of(measured) for name, measured in counts.items() if measured}
    columns: Columns[Total] = {
        ResultColumn("convolutions", Unit.COUNT): lambda total: total.convolutions,
        ResultColumn(LAST, Unit.SECONDS): lambda total: _figure(total.last_s),
        ResultColumn(BLOCKED, Unit.SECONDS): lambda total: _figure(total.blocked_s),
        ResultColumn(OVER_LAST, Unit.RATIO): lambda total: _figure(total.over_last),
    }
    return publishing.table(
        name=f"blocked-channels-{setting.widest}",
        question="operators",
        title=f"All convolutions of networks with channels in blocks of {setting.widest}",
        threads=len(setting.cores),
        seeds=[setting.seed],
        interleaving=IN_TURNS,
        spread=INTERVAL,
        rows_are="network",
        columns=columns,
        rows=totals.items(),
        notes=[
            "Sums over a network's convolutions, each tuned alone and counted as often as it occurs. With channels "
            "last each is the faster of two programs, with weights as they are and packed.",
            *(note for network in networks for note in _missing(network, found)),
        ],
    )


def _missing(network: ProgramConvolutions, found: Mapping[str, Found]) -> list[str]:
    failed = [one.name for one in network.counts if one.name not in found]
    notes = [f"{network.name}: not measured: {name}" for name in failed]
    return notes + [f"{network.name}: left out: {count} {name}" for name, count in network.left_out.items()]


def convolutions_table(
    networks: Sequence[ProgramConvolutions], found: Mapping[str, Found], setting: Setting, publishing: Publishing
) -> ResultTable:
    """Return a table with a row per convolution: how often networks have it, and what it takes in each layout."""
    counts = {network.name: {one.name: count for one, count in network.counts.items()} for network in networks}
    columns: Columns[Found] = {
        **{ResultColumn(f"in {name}", Unit.COUNT): partial(_count, of) for name, of in counts.items()},
        ResultColumn(LAST, Unit.SECONDS): lambda one: _figure(one.forms[LAST].samples.interval),
        ResultColumn("packed over it", Unit.RATIO): _packed_over_last,
        ResultColumn("blocked over the faster", Unit.RATIO): lambda one: _figure(
            ratio(one.blocked.samples, one.last.samples)
        ),
        ResultColumn("scripts"): _scripts,
    }
    return publishing.table(
        name=f"blocked-channels-{setting.widest}-convolutions",
        question="operators",
        title=f"Convolutions with channels in blocks of {setting.widest}",
        threads=len(setting.cores),
        seeds=[setting.seed],
        interleaving=IN_TURNS,
        spread=INTERVAL,
        rows_are="image, window and filters",
        columns=columns,
        rows=[(name, one) for name, one in found.items() if any(name in of for of in counts.values())],
    )


def _count(counts: Mapping[str, int], found: Found) -> int | None:
    return counts.get(found.name)


def _packed_over_last(found: Found) -> Figure | None:
    if PACKED not in found.forms:
        return None
    return _figure(ratio(found.forms[PACKED].samples, found.forms[LAST].samples))


def _scripts(found: Found) -> str:
    """Return the scripts with channels last, in the faster way, and with blocked channels."""
    return " / ".join(", ".join(each.sketches) or "none" for each in (found.last, found.blocked))


def _figure(interval: Interval) -> Figure:
    return figure(interval.median, interval.low, interval.high)
