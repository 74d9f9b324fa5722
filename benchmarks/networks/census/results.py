"""The censuses of networks as lines of text and as a table of results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Better, Columns, ResultColumn, ResultTable, Unit
from benchmarks.networks.census.counting import AS_IT_IS, REWRITTEN, TUNED, NetworkCensus, OtherDispatch, ProgramCensus
from benchmarks.networks.comparison import OTHER_FLAGS, UNTUNED, Result
from benchmarks.operators.programs import TUNED as OWN

NAMED = 0.005
"""Least share of the dispatches' time from which a dispatch is named: the 20 that fit below a tenth of the time, which
may lack scripts."""


def summary(census: NetworkCensus) -> str:
    """Return a line with the shares of every program of a network, and its ratios to engines."""
    programs = (f"{name} {_shares(program)}" for name, program in census.programs.items())
    ratios = (f"{ratio:.2f} of {label}" for label, ratio in over_engines(census.compared).items())
    return f"{census.network}: {'; '.join((*programs, *ratios))}"


def named(census: NetworkCensus) -> Iterator[str]:
    """Yield a line for each dispatch that keeps a network's last program from a goal, and for what else went wrong."""
    _, program = census.last
    large = [each for each in program.binding if each.share >= NAMED]
    yield from map(_line, large)
    if small := [each for each in program.binding if each.share < NAMED]:
        yield f"{sum(each.share for each in small):.1%} in all below {NAMED:.1%} each: {len(small)}"
    yield from (f"left out: {name}: {why}" for name, why in census.left_out.items())
    yield from (f"internal error: {text}" for text in census.internal_errors)


def over_engines(compared: Result | None) -> dict[str, float]:
    """Return the time of mlir-sched over that of each engine, by the engine's name."""
    seconds = compared.seconds if compared else {}
    own = (OWN, UNTUNED, OTHER_FLAGS)
    return {label: seconds[OWN].median / each.median for label, each in seconds.items() if label not in own}


def results_table(
    rows: Sequence[NetworkCensus], publishing: Publishing, *, threads: int, seed: int, minutes: float | None
) -> ResultTable:
    """Return the table of some networks, with a note for each dispatch that keeps one from a goal.

    Args:
        minutes: Minutes of tuning; None where nothing was tuned.
    """
    programs = [name for name in (AS_IT_IS, REWRITTEN, TUNED) if any(name in row.programs for row in rows)]
    engines = list(dict.fromkeys(label for row in rows for label in over_engines(row.compared)))
    after = "" if minutes is None else f" after {minutes:g} minutes"
    columns: Columns[NetworkCensus] = {
        **{
            ResultColumn(f"{name}: {title}", unit): partial(_of_program, name, figure_of)
            for name in programs
            for title, (unit, figure_of) in FIGURES.items()
        },
        **{ResultColumn(f"over {label}", Unit.RATIO, Better.BELOW): partial(_over_engine, label) for label in engines},
    }
    return publishing.table(
        name=f"census-{threads}-threads{'' if minutes is None else f'-{minutes:g}-minutes'}",
        question="networks",
        title=f"What the time of networks goes into{after}",
        threads=threads,
        seeds=() if minutes is None else (seed,),
        interleaving="Engines in turns, on the same pinned cores" if engines else "Nothing is compared",
        spread="of a ratio, the 95 % interval" if engines else "none: shares are of the median of a program's runs",
        rows_are="model",
        columns=columns,
        rows=[(row.network, row) for row in rows],
        notes=[f"{row.network}, {row.last[0]}: {line}" for row in rows for line in named(row)],
    )


FIGURES: Mapping[str, tuple[Unit, Callable[[ProgramCensus], float]]] = {
    "can have scripts": (Unit.SHARE, lambda program: program.scripted),
    "copies and transposes": (Unit.SHARE, lambda program: program.moved),
    "MB moved": (Unit.NUMBER, lambda program: program.moved_bytes / 1e6),
    "of MB written": (Unit.SHARE, lambda program: program.moved_of_written),
    "between dispatches": (Unit.SHARE, lambda program: program.between),
}
"""What the table says of every program of a network."""


def _of_program(name: str, figure_of: Callable[[ProgramCensus], float], row: NetworkCensus) -> float | None:
    return figure_of(row.programs[name]) if name in row.programs else None


def _over_engine(label: str, row: NetworkCensus) -> float | None:
    return over_engines(row.compared).get(label)


def _shares(program: ProgramCensus) -> str:
    moved = f"{program.moved_bytes / 1e6:.3g} MB ({program.moved_of_written:.1%} of all written)"
    parts = f"{program.scripted:.1%} can have scripts", f"{program.moved:.1%} moves {moved}"
    return f"({program.variant}) {', '.join(parts)}, {program.between:.1%} between dispatches"


def _line(each: OtherDispatch) -> str:
    moves = f"{each.movement} {each.written_bytes / 1e6:.3g} MB" if each.movement else ""
    return f"{each.share:.1%} {each.what or each.name}: {'; '.join(filter(None, (moves, each.why)))}"
