"""The design spaces in numbers: their size, and the outcomes of random candidates.

``python -m benchmarks space_audit [OPERATOR or FILE.mlir ...] [--samples 32]``: per dispatch and sketch the number of
traces, the share of draws that break no rule, and how many of the legal draws compile, give right results and differ in
their code. Nothing is timed. The legal draws are the candidates that a search without a cost model would measure; the
run ends with exit code 1 when 5 % or more of those of a dispatch fail.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.figures.publishing import Publishing, options_of, parsed
from benchmarks.figures.result_table import Columns, ResultColumn, ResultTable, Unit
from benchmarks.kept import Kept
from benchmarks.operators.table import OPERATORS, operator_named
from benchmarks.search.enumeration import Size, size_of
from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import Failure, IllegalTraceError, UserError
from mlir_sched.program.variants.tunability import can_tune
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.runner.checks.numeric_checks import checks_for_task
from mlir_sched.runner.program import program_of_task
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target, target_kind
from mlir_sched.targets.target import Target
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task
from mlir_sched.text import say
from mlir_sched.trace import Trace

MOST_FAILING = 0.05
"""Share of failures among the candidates of a dispatch above which the audit fails."""


@dataclass(frozen=True)
class SketchAudit:
    """The figures of one sketch of one dispatch.

    Attributes:
        task: Name of the dispatch.
        sketch: Name of the sketch.
        size: Number of the sketch's legal traces.
        attempts: Draws from the sketch's prior.
        legal: Draws that broke no rule.
        sampled: Distinct legal traces that were compiled and checked.
        binaries: Number of different compiled programs.
        failures: Number of failed traces by class of failure.
        messages: The first message of each class of failure.
    """

    program: str
    task: str
    sketch: str
    size: Size
    attempts: int
    legal: int
    sampled: int
    binaries: int
    failures: Mapping[str, int]
    messages: Mapping[str, str]

    @property
    def failed(self) -> int:
        return sum(self.failures.values())


KEPT = Kept("sketches", list[SketchAudit], 1)


def audit_task(
    program: str, task: Task, target: Target, pool: CompilerPool, runner: Runner, counts: tuple[int, int], seed: int
) -> list[SketchAudit]:
    """Return the figures of every sketch of a dispatch.

    Args:
        counts: Draws per sketch for the share of legal draws, and legal traces per sketch to compile.
    """
    assert task.dispatch is not None
    space = DesignSpace(Space.default(target), task.dispatch, target)
    rng = np.random.default_rng(seed)
    audits = []
    for sketch in space.sketches:
        attempts, wanted = counts
        legal = sum(_is_legal(space, rng, sketch) for _ in range(attempts))
        traces = _distinct(space, rng, sketch, wanted)
        failures, binaries = _check(space, task, traces, pool, runner)
        kinds = dict(Counter(failure.kind.value for failure in failures))
        messages = {failure.kind.value: failure.message for failure in reversed(failures)}
        size = size_of(space, sketch, rng)
        audits.append(
            SketchAudit(program, task.name, sketch, size, attempts, legal, len(traces), binaries, kinds, messages)
        )
    return audits


def _is_legal(space: DesignSpace, rng: np.random.Generator, sketch: str) -> bool:
    try:
        space.attempt(rng, sketch)
    except IllegalTraceError:
        return False
    return True


def _distinct(space: DesignSpace, rng: np.random.Generator, sketch: str, wanted: int) -> list[Trace]:
    """Return ``wanted`` distinct legal traces, or fewer if four times as many draws do not find them."""
    found: dict[str, Trace] = {}
    for _ in range(4 * wanted):
        if len(found) == wanted:
            break
        try:
            trace = space.sample(rng, sketch)
        except IllegalTraceError:
            continue
        found.setdefault(trace.key, trace)
    return list(found.values())


def _check(
    space: DesignSpace, task: Task, traces: Sequence[Trace], pool: CompilerPool, runner: Runner
) -> tuple[list[Failure], int]:
    """Compile and check traces; return the failures in the order of the traces and the number of different programs."""
    assert task.dispatch is not None
    results = dict(pool.compile(task.source, [None, *map(space.script, traces)]))
    untuned = results.pop(0)
    if untuned.vmfb is None:
        raise UserError(f"{task.name}: IREE cannot compile this dispatch alone: {untuned.failure}")
    programs = {r.binary_hash: program_of_task(task, r.vmfb) for r in results.values() if r.vmfb is not None}
    baseline = program_of_task(task, untuned.vmfb)
    checked = runner.check(baseline, list(programs.values()), checks_for_task(task))
    wrong = dict(zip(programs, checked, strict=True))
    outcomes = [results[i].failure or wrong[results[i].binary_hash] for i in sorted(results)]
    return [failure for failure in outcomes if failure is not None], len(programs)


def failing_share(audits: Iterable[SketchAudit]) -> dict[tuple[str, str], float]:
    """Return the share of failures by program and dispatch; sketches have equal weights, as in a search's draws."""
    shares: dict[tuple[str, str], list[float]] = {}
    for audit in audits:
        if audit.sampled:
            shares.setdefault((audit.program, audit.task), []).append(audit.failed / audit.sampled)
    return {key: float(np.mean(found)) for key, found in shares.items()}


COLUMNS: Columns[SketchAudit] = {
    ResultColumn("legal traces"): lambda audit: str(audit.size),
    ResultColumn("legal draws", Unit.SHARE): lambda audit: audit.legal / audit.attempts,
    ResultColumn("compile and are right"): lambda audit: f"{audit.sampled - audit.failed} of {audit.sampled}",
    ResultColumn("distinct code", Unit.COUNT): lambda audit: audit.binaries,
    ResultColumn("failures"): lambda audit: ", ".join(f"{kind} {count}" for kind, count in audit.failures.items()),
}


def results_table(audits: Sequence[SketchAudit], arguments: argparse.Namespace, publishing: Publishing) -> ResultTable:
    """Return a table of results with a row per sketch."""
    return publishing.table(
        name="space-audit",
        question="search",
        title="How large the spaces are, and how many candidates are right",
        threads=arguments.threads,
        seeds=[arguments.seed],
        interleaving="Nothing is timed",
        spread="none; traces with the standard error of Knuth's estimate where they are too many to count",
        rows_are="dispatch and sketch",
        columns=COLUMNS,
        rows=[(f"{audit.program}: {audit.task}, {audit.sketch}", audit) for audit in audits],
    )


def notes_of(audits: Sequence[SketchAudit]) -> list[str]:
    """Return the first message of every class of failure, and the dispatches with too many failing candidates."""
    notes = [f"{a.task} {a.sketch}: {kind}: {text}" for a in audits for kind, text in a.messages.items()]
    for (program, task), share in failing_share(audits).items():
        if share > MOST_FAILING:
            notes.append(f"{program} {task}: {share:.1%} of the candidates fail")
    return notes


def main() -> int:
    arguments, publishing = parsed(_parser())
    audits: list[SketchAudit] = []
    untunable: list[str] = []
    operators = [operator_named(name) for name in arguments.operators] or list(OPERATORS)
    target = detect_target("llvm-cpu", arguments.threads)
    flags = target_kind(target.name).variants[arguments.variant]
    with CompilerPool((*target.flags, *flags)) as pool, Runner(RunnerOptions(threads=arguments.threads)) as runner:
        for path in dict.fromkeys(path for operator in operators for path in operator.files):
            say(f"{path.stem} ...")
            for task in extract(path, target, flags).tasks:
                if not can_tune(task, Space.default(target), target):
                    reason = task.not_tunable or "no transform module schedules it"
                    untunable.append(f"{task.name}: not in any space: {reason}")
                    continue
                counts = (arguments.attempts, arguments.samples)
                audits += audit_task(path.stem, task, target, pool, runner, counts, arguments.seed)
            KEPT.write(arguments.json, audits, {**vars(arguments), "json": None, "results": None})
    if audits:
        publishing.show(results_table(audits, arguments, publishing), target)
    say(*untunable, *notes_of(audits))
    return int(any(share > MOST_FAILING for share in failing_share(audits).values()))


def _parser() -> argparse.ArgumentParser:
    parser = options_of(__doc__)
    parser.add_argument("operators", nargs="*", help="names of the operators, or .mlir files; by default all operators")
    parser.add_argument("--samples", type=int, default=32, help="legal traces per sketch that are compiled and checked")
    parser.add_argument("--attempts", type=int, default=1000, help="draws per sketch for the share of legal ones")
    parser.add_argument("--variant", default="default", choices=[*target_kind("llvm-cpu").variants])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the results there")
    return parser
