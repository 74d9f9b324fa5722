"""Emission: finalists are measured once more, the winners become a library, and the library has to prove itself.

The proof goes the way a user goes: ``iree-compile @flags.txt model.mlir`` in another folder, the strategies counted in
the compiled IR, the numbers checked, the time measured against plain ``iree-compile`` and every untuned variant.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlir_sched import __version__
from mlir_sched.compiler import CompilerPool, applied_strategies
from mlir_sched.final_measurement import compile_to_bytes, final_options, measure_program, measure_scripts
from mlir_sched.library import Strategy, build_library
from mlir_sched.measurement import Timing
from mlir_sched.record import Record, describe
from mlir_sched.result import ProgramResult, TuneResult
from mlir_sched.runner import BaselineError, Runner
from mlir_sched.space import DesignSpace
from mlir_sched.target import Target
from mlir_sched.task import Task
from mlir_sched.task_search import TaskSearch
from mlir_sched.trace import Trace
from mlir_sched.variants import BuiltVariant, entry_of

FINALISTS = 3
"""Best candidates per task that are measured once more, in a fresh process and for longer."""
NO_LOSS = 0.995
"""Ratio to the untuned program below which an emitted one is slower: medians of equal programs differ by less."""
LIBRARY, FLAGS, SUMMARY = "library.mlir", "flags.txt", "summary.json"


@dataclass(frozen=True)
class Winner:
    """The script that a dispatch is emitted with.

    Attributes:
        task: The task.
        space: Its design space.
        trace: The decisions.
        timing: Its time in the final measurement, with the ratio to the untuned code.
        symbol: Name of its strategy in the library.
        seed: Seed of the run that found it.
    """

    task: Task
    space: DesignSpace
    trace: Trace
    timing: Timing
    symbol: str
    seed: int


@dataclass(frozen=True)
class Finalists:
    """Winners by task key, and why the other tasks have none."""

    winners: Mapping[str, Winner] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Emission:
    """What was written, proven through the public route.

    Attributes:
        program: The end-to-end result.
        winners: The scripts that are part of it, by task key.
        notes: Why the other tasks stay as they are, by task key.
    """

    program: ProgramResult
    winners: Mapping[str, Winner]
    notes: Mapping[str, str]


def choose_finalists(searches: Sequence[TaskSearch], threads: int) -> Finalists:
    """Measure the best candidates of every task in a fresh process and keep those that beat the untuned code."""
    winners: dict[str, Winner] = {}
    notes: dict[str, str] = {}
    if not searches:
        return Finalists()
    flags = searches[0].task.flags
    with CompilerPool(flags) as pool, Runner(final_options(threads)) as runner:
        for number, search in enumerate(searches):
            records = search.ranked()[:FINALISTS]
            best = _measure_again(search.task, records, pool, runner) if records else None
            if best is None:
                notes[search.task.key] = "the finalists failed when repeated" if records else "no candidate is valid"
                continue
            record, timing = best
            if timing.ratio_low <= 1.0:
                notes[search.task.key] = f"no gain: the best script is {timing.ratio:.2f}x the untuned code"
                continue
            assert record.trace is not None
            symbol = strategy_symbol(number, search.task.name)
            winners[search.task.key] = Winner(search.task, search.space, record.trace, timing, symbol, record.seed)
    return Finalists(winners, notes)


def emit(
    folder: Path | None,
    model: Path,
    variants: Sequence[BuiltVariant],
    tuned: BuiltVariant,
    finalists: Finalists,
    threads: int,
    target: Target,
) -> Emission:
    """Write the tuned folder and prove it; without winners, or when they lose in the program, fall back.

    Args:
        folder: Where to write; None proves the same in a temporary folder.
        model: The model's path.
        variants: Every untuned variant, the default first.
        tuned: The variant whose dispatches were tuned.
        finalists: The scripts to emit.
        threads: Threads of the program.
        target: What was tuned for.
    """
    with tempfile.TemporaryDirectory(prefix="mlir-sched-") as scratch:
        place = folder or Path(scratch)
        winners, notes = dict(finalists.winners), dict(finalists.notes)
        with Runner(final_options(threads)) as runner:
            while True:
                _write(place, tuned, list(winners.values()), target)
                vmfb, missing = _public_route(place, model, winners)
                if not missing:
                    program = _measure_program(runner, variants, tuned, vmfb)
                    if program.tuned.ratio >= NO_LOSS * program.variants.get(tuned.variant.name, 1.0) or not winners:
                        break
                    missing = [min(winners.values(), key=lambda w: w.timing.ratio * w.task.weight)]
                    reason = "it made the whole program slower"
                else:
                    reason = "its strategy did not apply in the program"
                for winner in missing:
                    del winners[winner.task.key]
                    notes[winner.task.key] = reason
            best = max(program.variants, key=lambda name: program.variants[name])
            if program.variants[best] > program.tuned.ratio_high:
                chosen = next(v for v in variants if v.variant.name == best)
                notes |= dict.fromkeys(winners, f"the untuned variant {best} is faster as a whole")
                winners = {}
                _write(place, chosen, [], target)
                vmfb, _ = _public_route(place, model, winners)
                program = _measure_program(runner, variants, chosen, vmfb)
        return Emission(program, winners, notes)


def write_summary(folder: Path, result: TuneResult) -> None:
    """Write ``summary.json``."""
    _replace(folder / SUMMARY, json.dumps(result.to_json(), indent=2) + "\n")


def strategy_symbol(number: int, name: str) -> str:
    """Return the symbol of a dispatch's strategy: ``tuned_<number>_<what it computes>``."""
    what = re.sub(r"^.*?_?dispatch_\d+_", "", name)
    return f"tuned_{number}_{re.sub(r'[^A-Za-z0-9_]', '_', what)}"


def _measure_again(
    task: Task, records: Sequence[Record], pool: CompilerPool, runner: Runner
) -> tuple[Record, Timing] | None:
    """Compile and measure records afresh and return the one with the best ratio, or None when all fail now."""
    try:
        results = measure_scripts(task, [record.script for record in records], pool, runner)
    except BaselineError:
        return None
    valid = [(record, r.timing) for record, r in zip(records, results, strict=True) if r.timing is not None]
    return max(valid, key=lambda pair: pair[1].ratio, default=None)


def _write(folder: Path, variant: BuiltVariant, winners: Sequence[Winner], target: Target) -> None:
    """Write library and flags; without winners there is no library."""
    flags = list(variant.model.flags)
    library = folder / LIBRARY
    if winners:
        _replace(library, build_library([_strategy(winner, target) for winner in winners]))
        flags.append(f"--iree-codegen-transform-dialect-library={library}")
    else:
        library.unlink(missing_ok=True)
    _replace(folder / FLAGS, "\n".join(flags) + "\n")


def _strategy(winner: Winner, target: Target) -> Strategy:
    timing = winner.timing
    assert winner.task.dispatch is not None
    provenance = {
        "dispatch": winner.task.name,
        "task": winner.task.key,
        "ops": describe(winner.task.dispatch),
        "target": f"{target.backend} {_cpu(target)}",
        "target_key": target.key,
        "versions": f"mlir-sched {__version__}, iree-compiler {target.compiler}",
        "speedup": f"{timing.ratio:.3f} ({timing.ratio_low:.3f} to {timing.ratio_high:.3f})",
        "median_us": f"{timing.median_s * 1e6:.2f} ({timing.low_s * 1e6:.2f} to {timing.high_s * 1e6:.2f})",
        "seed": str(winner.seed),
    }
    return Strategy(winner.symbol, winner.task.source, winner.space, winner.trace, provenance)


def _cpu(target: Target) -> str:
    found = re.search(r'\bcpu = "([^"]*)"', target.description)
    return found.group(1) if found else "unknown"


def _public_route(folder: Path, model: Path, winners: Mapping[str, Winner]) -> tuple[bytes, list[Winner]]:
    """Compile as a user does and return the program, with the winners whose strategy did not apply."""
    flags = (f"@{folder / FLAGS}",)
    applied = applied_strategies(model, flags, None) if winners else {}
    missing = [winner for winner in winners.values() if not applied.get(winner.symbol)]
    return (b"", missing) if missing else (compile_to_bytes(model, flags), [])


def _measure_program(
    runner: Runner, variants: Sequence[BuiltVariant], tuned: BuiltVariant, vmfb: bytes
) -> ProgramResult:
    """Measure the emitted program and every untuned variant, interleaved with plain ``iree-compile``."""
    default, *others = [variant for variant in variants if variant.timing is not None]
    rivals = {variant.variant.name: variant.vmfb for variant in others}
    timings = measure_program(runner, entry_of(tuned.model), default.vmfb, rivals, vmfb)
    ratios = {default.variant.name: 1.0, **timings.others}
    return ProgramResult(timings.untuned, timings.emitted, ratios, tuned.variant.name)


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
