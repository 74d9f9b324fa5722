"""The report of the check, as Markdown and as JSON."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from benchmarks.devices.device_check.candidates import Numbers
from benchmarks.devices.device_check.speeds import Speed, Speeds
from benchmarks.figures.publishing import Publishing, gain
from benchmarks.figures.result_table import Better, Columns, ResultColumn, ResultTable, Unit
from benchmarks.figures.tables import markdown_table, result_table
from benchmarks.search.space_audit import SketchAudit
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tuned_folder.result import failures_together

VERSION = 1


@dataclass(frozen=True)
class Report:
    """What the check found.

    Attributes:
        target: The device.
        numbers: What random candidates computed.
        speeds: The tuned programs.
        seconds: Seconds that the check took.
        seed: Seed of the draws and the searches.
        publishing: Where the table of the tuned programs goes.
    """

    target: Target
    numbers: Numbers
    speeds: Speeds
    seconds: float
    seed: int
    publishing: Publishing

    def write(self, markdown: Path | None, data: Path | None) -> None:
        """Write the report to the files that are named."""
        if markdown:
            markdown.write_text(f"{self.text}\n")
        if data:
            data.write_text(json.dumps(self._json(), indent=1, default=_plain))

    @property
    def text(self) -> str:
        """The report as Markdown."""
        return "\n".join([*self._head(), "", *self._numbers(), "", *self._speeds()])

    def _head(self) -> Iterator[str]:
        yield f"{date.today().isoformat()}, {self.target.processor}, {self.seconds / 60:.1f} min"
        yield ""
        for name, value in target_kind(self.target.name).facts(self.target):
            yield f"- {name}: {value}"

    def _numbers(self) -> Iterator[str]:
        found = self.numbers
        yield self._right()
        yield ""
        yield markdown_table(["sketch", "programs", "right", "distinct code", "failures"], self._sketches())
        yield ""
        for audit in found.audits:
            for kind, message in audit.messages.items():
                yield f"- {audit.program} {audit.sketch}: {kind}: {message}"
        yield from (f"- {problem}" for problem in found.problems)
        if found.missing:
            yield f"- no time was left for the candidates of {', '.join(found.missing)}"

    def _right(self) -> str:
        sampled = self.numbers.sampled
        return f"{sampled - self.numbers.failed} of {sampled} random candidates compile, run and are right."

    def _sketches(self) -> Iterator[list[str]]:
        by_sketch = defaultdict[str, list[SketchAudit]](list)
        for audit in self.numbers.audits:
            by_sketch[audit.sketch].append(audit)
        for sketch, audits in by_sketch.items():
            kinds = failures_together(audit.failures for audit in audits)
            sampled, failed = sum(a.sampled for a in audits), sum(a.failed for a in audits)
            failures = ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "-"
            binaries, programs = sum(a.binaries for a in audits), len({a.program for a in audits})
            yield [sketch, str(programs), f"{sampled - failed} of {sampled}", str(binaries), failures]

    def _speeds(self) -> Iterator[str]:
        yield result_table(self.results_table())
        yield ""
        yield from (f"- {problem}" for problem in self.speeds.problems)

    def results_table(self) -> ResultTable:
        """Return the tuned programs as a table of results."""
        return self.publishing.table(
            name=f"dispatches-{self.target.name}",
            question="devices",
            title=f"Programs on {self.target.name} beside PyTorch",
            threads=0,
            seeds=[self.seed],
            interleaving="Tuned and untuned code in turns, PyTorch before in a process of its own",
            spread="95 % interval of the median",
            rows_are="program",
            columns=self._columns(),
            rows=[(speed.name, speed) for speed in self.speeds.speeds],
            notes=[self._right()],
        )

    def _columns(self) -> Columns[Speed]:
        return {
            ResultColumn("IREE", Unit.SECONDS): lambda speed: speed.result.program.untuned.median_s,
            ResultColumn("tuned", Unit.SECONDS): lambda speed: speed.result.program.tuned.median_s,
            ResultColumn("speed-up", Unit.RATIO, Better.ABOVE): lambda speed: gain(speed.result.program.tuned),
            ResultColumn("its dispatches", Unit.SECONDS): lambda speed: speed.dispatches_s,
            ResultColumn("of peak", Unit.SHARE): lambda speed: speed.share_of_peak(self.target.gpu_resources),
            ResultColumn("PyTorch, call", Unit.SECONDS): lambda speed: speed.torch_call_s,
            ResultColumn("PyTorch, in a row", Unit.SECONDS): lambda speed: speed.torch_row_s,
            ResultColumn("trials", Unit.COUNT): lambda speed: speed.result.trials,
        }

    def _json(self) -> dict[str, object]:
        speeds = [asdict(speed) | {"result": speed.result.to_json()} for speed in self.speeds.speeds]
        return {
            "version": VERSION,
            "target": asdict(self.target),
            "seconds": self.seconds,
            "numbers": asdict(self.numbers),
            "speeds": speeds,
            "problems": self.speeds.problems,
        }


def _plain(value: object) -> object:
    """Return a set of a target's attributes, or what is in such a set, as JSON has it."""
    if isinstance(value, frozenset):
        return sorted(value, key=str)
    return asdict(value)  # type: ignore[call-overload]
