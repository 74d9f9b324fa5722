"""The report of the check, as Markdown and as JSON."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from benchmarks.devices.device_check.candidates import Numbers
from benchmarks.devices.device_check.speeds import Speed, Speeds
from benchmarks.figures.publishing import Publishing, gain
from benchmarks.figures.result_table import Better, Cell, Figure, ResultColumn, ResultTable, Unit, figure
from benchmarks.search.space_audit import SketchAudit
from mlir_sched.targets import target_kind
from mlir_sched.targets.target import Target
from mlir_sched.text import seconds, speedup
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
    """

    target: Target
    numbers: Numbers
    speeds: Speeds
    seconds: float

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
        yield "| sketch | programs | right | distinct code | failures |"
        yield "|---|---|---|---|---|"
        for sketch, audits in self._by_sketch().items():
            kinds = failures_together(audit.failures for audit in audits)
            sampled, failed = sum(a.sampled for a in audits), sum(a.failed for a in audits)
            failures = ", ".join(f"{kind} {count}" for kind, count in kinds.items()) or "-"
            binaries, programs = sum(a.binaries for a in audits), len({a.program for a in audits})
            yield f"| {sketch} | {programs} | {sampled - failed} of {sampled} | {binaries} | {failures} |"
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

    def _speeds(self) -> Iterator[str]:
        yield "| program | IREE | tuned | speed-up | its dispatches | of peak | PyTorch, call | in a row | trials |"
        yield "|---|---|---|---|---|---|---|---|---|"
        yield from map(self._row, self.speeds.speeds)
        yield ""
        yield from (f"- {problem}" for problem in self.speeds.problems)

    def results_table(self, seed: int, publishing: Publishing) -> ResultTable:
        """Return the tuned programs as a table of results."""
        return publishing.table(
            name=f"dispatches-{self.target.name}",
            question="devices",
            title=f"Programs on {self.target.name} beside PyTorch",
            threads=0,
            seeds=[seed],
            interleaving="Tuned and untuned code in turns, PyTorch before in a process of its own",
            spread="95 % interval of the median",
            rows_are="program",
            columns=[
                ResultColumn("IREE", Unit.SECONDS),
                ResultColumn("tuned", Unit.SECONDS),
                ResultColumn("speed-up", Unit.RATIO, Better.ABOVE),
                ResultColumn("its dispatches", Unit.SECONDS),
                ResultColumn("of peak", Unit.SHARE),
                ResultColumn("PyTorch, call", Unit.SECONDS),
                ResultColumn("PyTorch, in a row", Unit.SECONDS),
                ResultColumn("trials", Unit.COUNT),
            ],
            rows=[(speed.name, self._figures(speed)) for speed in self.speeds.speeds],
            notes=[self._right()],
        )

    def _figures(self, speed: Speed) -> tuple[Cell, ...]:
        program, share = speed.result.program, speed.share_of_peak(self.target.gpu_resources)
        known = (share, speed.torch_call_s, speed.torch_row_s)
        return (
            figure(program.untuned.median_s),
            figure(program.tuned.median_s),
            gain(program.tuned),
            figure(speed.dispatches_s),
            *(None if value is None else figure(value) for value in known),
            Figure(speed.result.trials),
        )

    def _row(self, speed: Speed) -> str:
        program, share = speed.result.program, speed.share_of_peak(self.target.gpu_resources)
        cells = (
            speed.name,
            seconds(program.untuned.median_s),
            seconds(program.tuned.median_s),
            speedup(program.tuned),
            seconds(speed.dispatches_s),
            "-" if share is None else f"{share:.0%}",
            "-" if speed.torch_call_s is None else seconds(speed.torch_call_s),
            "-" if speed.torch_row_s is None else seconds(speed.torch_row_s),
            str(speed.result.trials),
        )
        return f"| {' | '.join(cells)} |"

    def _by_sketch(self) -> dict[str, list[SketchAudit]]:
        found = defaultdict[str, list[SketchAudit]](list)
        for audit in self.numbers.audits:
            found[audit.sketch].append(audit)
        return found

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
