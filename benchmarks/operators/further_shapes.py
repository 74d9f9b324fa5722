"""Tunes shapes that are in no other table, and compares the emitted programs with every untuned IREE variant.

``python -m benchmarks further_shapes [--only NAME ...] [--trials 32] [--threads 1] [--json F] [--store DIR]``. Every
shape is tuned with an empty store and sampled in turns with IREE's variants, as :mod:`benchmarks.operators` does. Ends
with exit code 1 when tuning a shape ends with an error, when more than 5 % of its candidates fail, or when the emitted
program is slower than the fastest variant beyond the noise. A shape that no transform module schedules only gets a
note.

With ``--json`` and ``--store`` an interrupted run is resumed.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Better, Columns, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.figures.rows import CALLS, KERNELS, Against, Row, row_of
from benchmarks.kept import Kept
from benchmarks.operators.comparison import Comparison, Setting
from benchmarks.operators.programs import TUNED
from benchmarks.operators.shapes import SHAPES, Shape
from benchmarks.operators.table import operator_of_file
from benchmarks.peers.client import PeerError
from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.pipeline import default_store
from mlir_sched.runner.cores import choose_cores
from mlir_sched.targets import detect_target
from mlir_sched.text import say

MOST_FAILING = 0.05
"""Largest share of failing candidates with which a shape passes."""
LOSS = 0.98
"""A shape is lost when the upper end of the 95 % interval of its ratio to the fastest variant is below this figure and
the loss is larger than :data:`SMALLEST_LOSS_S`."""
SMALLEST_LOSS_S = 100e-9
"""Largest loss per call that still counts as noise. An 8x8 matmul of 0.3 us, emitted as the very default program that
it was compared with, was once measured 54 ns slower."""
MISSED = 0.6
"""Share of the roofline below which a shape without a gain counts as a missed gain."""


@dataclass(frozen=True)
class Found:
    """The results of one shape.

    Attributes:
        name: The shape's name.
        problem: Why no program was emitted; empty when one was.
        seconds: Seconds of a whole call of the emitted program; of the fastest variant when none was emitted.
        of_roofline: Share of the roofline that this program reaches, without the time of an empty call where the two
            can be told apart; 0 when unknown.
        bound: What bounds the roofline.
        default: Time of plain ``iree-compile`` divided by the emitted program's; above 1 is a gain.
        best: Time of the fastest variant divided by the emitted program's.
        best_name: Name of the fastest variant.
        tried: Candidates measured.
        failures: Failed candidates by class: their number and the first message.
        tuning_s: Seconds of tuning.
        how: Variant and sketches of the emitted program.
    """

    name: str
    problem: str
    seconds: float
    of_roofline: float
    bound: str
    default: Against | None
    best: Against | None
    best_name: str
    tried: int
    failures: Mapping[str, tuple[int, str]]
    tuning_s: float
    how: str

    @property
    def failed(self) -> int:
        """Candidates that failed."""
        return sum(count for count, _ in self.failures.values())

    @property
    def verdict(self) -> str:
        """Why the shape fails the benchmark; empty when it passes."""
        if self.problem:
            return "error"
        wrong = ["failures"] if self.failed > MOST_FAILING * self.tried else []
        return ", ".join([*wrong, *(["loss"] if self.lost else [])])

    @property
    def lost(self) -> bool:
        """Whether the fastest variant is faster than the emitted program beyond the noise."""
        if self.best is None or self.best.high >= LOSS:
            return False
        return self.seconds * (1 - self.best.ratio) > SMALLEST_LOSS_S

    @property
    def missed(self) -> bool:
        """Whether the shape has no gain over the fastest variant although it is far from the roofline."""
        gained = self.best is not None and self.best.low > 1.0
        return not gained and self.of_roofline < MISSED


KEPT = Kept("shapes", list[Found], 3)


def tune_shape(shape: Shape, setting: Setting, folder: Path) -> Found:
    """Tune a shape and compare it with IREE's variants; resume an earlier run that is in the folder.

    Raises:
        UserError: IREE cannot compile the shape.
        PeerError: IREE cannot run the shape.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{shape.name}.mlir"
    path.write_text(shape.text)
    (seed,) = setting.seeds
    session = Comparison(operator_of_file(path), setting, folder, seed).run()
    return found_in(row_of(shape.name, [session]), folder / f"tuned-{shape.name}")


def found_in(row: Row, tuned: Path) -> Found:
    """Return the results of a shape from its row of the comparison and its tuned folder."""
    view = row.calls
    own, best = (view.columns.get(label or "") for label in (TUNED, view.best_peer))
    notes = [note for note in row.notes if note.startswith(TUNED)]
    tried, failures = candidates_of(tuned)
    shown = own or best
    return Found(
        name=row.name,
        problem="" if own else " ".join(notes) or "nothing was emitted",
        seconds=shown.time_s if shown else 0.0,
        of_roofline=row.of_roofline(KERNELS) or row.of_roofline(CALLS) or 0.0,
        bound=row.bound,
        default=view.against(["IREE default"]),
        best=view.against(view.columns),
        best_name=(view.best_peer or "").removeprefix("IREE "),
        tried=tried,
        failures=failures,
        tuning_s=sum(tuning.seconds for tunings in row.tuning.values() for tuning in tunings),
        how=_how(tuned / "summary.json"),
    )


def candidates_of(tuned: Path) -> tuple[int, dict[str, tuple[int, str]]]:
    """Return the number of candidates that a run measured, and the failures by class: count and first message."""
    store = default_store(tuned)
    if not store.exists():
        return 0, {}
    tried, failures = 0, dict[str, tuple[int, str]]()
    with RecordStore.open(store, read_only=True) as records:
        for task in records.tasks():
            for context in records.contexts(task.key):
                for record in records.records(task.key, context):
                    tried += record.trace is not None
                    if record.trace is not None and (failure := record.outcome.failure) is not None:
                        count, first = failures.get(failure.kind.value, (0, failure.message))
                        failures[failure.kind.value] = count + 1, first
    return tried, failures


def _how(summary: Path) -> str:
    if not summary.exists():
        return ""
    data = json.loads(summary.read_text())
    sketches = dict.fromkeys(dispatch["sketch"] for dispatch in data["dispatches"] if dispatch["sketch"])
    return ", ".join([data["program"]["variant"], *sketches])


def _ratio(against: Against | None, note: str = "") -> Figure | None:
    return None if against is None else figure(against.ratio, against.low, against.high, note)


COLUMNS: Columns[Found] = {
    ResultColumn("time", Unit.SECONDS): lambda row: row.seconds,
    ResultColumn("of roofline", Unit.SHARE): lambda row: row.of_roofline,
    ResultColumn("IREE default over mlir-sched", Unit.RATIO): lambda row: _ratio(row.default),
    ResultColumn("fastest IREE variant over mlir-sched", Unit.RATIO, Better.ABOVE): lambda row: _ratio(
        row.best, row.best_name
    ),
    ResultColumn("failed"): lambda row: f"{row.failed} of {row.tried}",
    ResultColumn("tuning", Unit.SECONDS): lambda row: row.tuning_s,
    ResultColumn("emitted"): lambda row: row.how,
    ResultColumn("verdict"): lambda row: row.verdict or ("missed gain" if row.missed else None),
}


def results_table(rows: Sequence[Found], setting: Setting, publishing: Publishing) -> ResultTable:
    """Return a table of results with a row per shape."""
    return publishing.table(
        name="further-shapes",
        question="operators",
        title="Shapes that the design space was not made for",
        threads=setting.target.cores,
        seeds=setting.seeds,
        interleaving="Tuned and untuned code in turns",
        spread="95 % interval",
        rows_are="shape",
        columns=COLUMNS,
        rows=[(row.name, row) for row in rows],
    )


def notes_of(rows: Sequence[Found]) -> list[str]:
    """Return notes on what went wrong or was not tuned, and the totals."""
    notes = [f"{row.name}: {row.problem}" for row in rows if row.problem]
    notes += [
        f"{row.name}: {count} times {kind}: {text}" for row in rows for kind, (count, text) in row.failures.items()
    ]
    tried, failed = sum(row.tried for row in rows), sum(row.failed for row in rows)
    verdicts = [row.verdict for row in rows if row.verdict]
    return [*notes, f"{len(rows)} shapes, {tried} candidates, {failed} failed; {len(verdicts)} shapes are not well"]


def main() -> int:
    arguments, publishing = parsed(_parser())
    by_name = {shape.name: shape for shape in SHAPES}
    if unknown := sorted(set(arguments.only) - by_name.keys()):
        sys.exit(f"error: no such shape: {', '.join(unknown)}; shapes are {', '.join(by_name)}")
    target, cores = detect_target("llvm-cpu", arguments.threads), choose_cores(arguments.threads)
    asked = {name: getattr(arguments, name) for name in ("trials", "threads", "seed", "rounds")}
    setting = Setting(target, cores, (), arguments.trials, (arguments.seed,), arguments.rounds, 0.02, 60.0, 300.0)
    rows = {row.name: row for row in KEPT.read(arguments.json, asked) or []}
    chosen = [by_name[name] for name in arguments.only or by_name]
    with tempfile.TemporaryDirectory(prefix="mlir-sched-", ignore_cleanup_errors=True) as folder:
        for shape in chosen:
            if shape.name in rows:
                continue
            say(f"{shape.name} ...")
            try:
                row = tune_shape(shape, setting, (arguments.store or Path(folder)) / shape.name)
            except (UserError, PeerError) as error:
                row = Found(shape.name, str(error), 0.0, 0.0, "", None, None, "", 0, {}, 0.0, "")
            rows[shape.name] = row
            KEPT.write(arguments.json, list(rows.values()), asked)
    found = [rows[shape.name] for shape in chosen]
    publishing.show(results_table(found, setting, publishing), target)
    say(*notes_of(found))
    return int(any(row.verdict for row in found))


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="by default all shapes")
    parser.add_argument("--trials", type=int, default=32, help="per shape")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=20, help="samples per timed way")
    parser.add_argument("--json", type=Path, help="write the results there; shapes already there are not run again")
    parser.add_argument("--store", type=Path, help="keep a folder per shape there, for a run that goes on")
    return parser
