"""Emission: the winners become a library, and the library has to prove itself.

The proof goes the way a user goes: ``iree-compile @flags.txt model.mlir`` in another folder, the strategies counted in
the compiled IR, the numbers checked, the time measured against plain ``iree-compile`` and every untuned variant.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlir_sched import __version__
from mlir_sched.compiler import ModelCompileError, applied_rewrites, applied_strategies, compile_to_bytes
from mlir_sched.compiler.library_flags import library_flags
from mlir_sched.compiler.response_file import write_response_file
from mlir_sched.emission.final_measurement import measure_program
from mlir_sched.emission.finalists import Finalists, Winner
from mlir_sched.emission.library import Strategy, build_library, indistinct
from mlir_sched.emission.rivals import rivals_of
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.record import describe
from mlir_sched.result import ProgramResult, TuneResult
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.target import Target
from mlir_sched.variants import BuiltVariant

NO_LOSS = 0.995
"""Ratio to the untuned program below which an emitted one is slower: medians of equal programs differ by less."""
WORTH_IT = 1.01
"""Least speed-up for which flags are emitted in place of none, or scripts in place of flags alone: programs of equal
code differ by up to 1 % with the place that they are loaded at."""
LIBRARY, FLAGS, SUMMARY = "library.mlir", "flags.txt", "summary.json"


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


def emit(
    folder: Path | None,
    model: Path,
    variants: Sequence[BuiltVariant],
    tuned: BuiltVariant,
    finalists: Finalists,
    options: RunnerOptions,
    target: Target,
) -> Emission:
    """Write the tuned folder and prove it; without winners, or when they lose in the program, fall back.

    Args:
        folder: Where to write; None proves the same in a temporary folder.
        model: The model's path.
        variants: Every untuned variant, the default first.
        tuned: The variant whose dispatches were tuned.
        finalists: The scripts to emit.
        options: How programs are run and timed.
        target: What was tuned for.
    """
    with temporary_folder() as scratch, Runner(options) as runner:
        attempt = _Attempt(folder or Path(scratch), model, variants, target, runner)
        winners, notes = dict(finalists.winners), dict(finalists.notes)
        program, complaints = attempt.prove(tuned, winners)
        while program is None or complaints:
            notes |= complaints
            winners = {key: winner for key, winner in winners.items() if key not in complaints}
            program, complaints = attempt.prove(tuned, winners)
        untuned = plainest_of_fastest(program.variants, program.tuned.ratio if winners else None)
        if untuned is not None and (winners or untuned != program.variant):
            against = f"{program.tuned.ratio:.2f}x with scripts, {program.variants[untuned]:.2f}x without"
            notes |= dict.fromkeys(winners, f"the untuned variant {untuned} is as fast as a whole: {against}")
            winners = {}
            chosen = next(v for v in variants if v.variant.name == untuned)
            program = attempt.prove(chosen, winners)[0] or program
        return Emission(program, winners, notes)


def plainest_of_fastest(untuned: Mapping[str, float], scripted: float | None) -> str | None:
    """Return the untuned variant to emit, or None for the scripts.

    Args:
        untuned: Ratio of every untuned variant to the first of them, the default.
        scripted: That of the program with scripts; None when there is none.
    """
    default, *_ = untuned
    best = max(untuned, key=untuned.__getitem__)
    if untuned[best] < WORTH_IT * untuned[default]:
        best = default
    return None if scripted is not None and scripted >= WORTH_IT * untuned[best] else best


@dataclass(frozen=True)
class _Attempt:
    """Writes a set of scripts and proves it through the public route."""

    folder: Path
    model: Path
    variants: Sequence[BuiltVariant]
    target: Target
    runner: Runner

    def prove(
        self, variant: BuiltVariant, winners: Mapping[str, Winner]
    ) -> tuple[ProgramResult | None, dict[str, str]]:
        """Return the program's result, and for every script that has to go (by task key) why.

        Raises:
            ModelCompileError: The program without any script does not compile or is wrong.
        """
        if shared := self._sharing(winners):
            return None, shared
        self._write(variant, list(winners.values()))
        flags = (f"@{self.folder / FLAGS}",)
        try:
            rewrite = variant.variant.rewrite
            if rewrite and rewrite.name not in applied_rewrites(self.model, flags, None):
                raise ModelCompileError(f"the rewrite {rewrite.name} was not applied")
            applied = applied_strategies(self.model, flags, None) if winners else {}
            missing = [key for key, winner in winners.items() if not applied.get(winner.symbol)]
            if missing:
                return None, dict.fromkeys(missing, "its strategy did not apply in the program")
            program = self._measure(variant, winners, compile_to_bytes(self.model, flags))
        except ModelCompileError as error:
            if not winners:
                raise
            reason = f"the program fails with it: {str(error).splitlines()[0]}"
            return None, dict.fromkeys(self._failing_alone(variant, winners) or [_least(winners)], reason)
        if winners and program.tuned.ratio < NO_LOSS * program.variants.get(variant.variant.name, 1.0):
            return program, {_least(winners): "it made the whole program slower"}
        return program, {}

    def _sharing(self, winners: Mapping[str, Winner]) -> dict[str, str]:
        """Return why some scripts cannot be in one library with the others, by task key."""
        left_out = indistinct([_strategy(winner, self.target) for winner in winners.values()])
        return {
            key: f"no matcher tells it from the dispatch of @{left_out[winner.symbol]}, whose script it gets"
            for key, winner in winners.items()
            if winner.symbol in left_out
        }

    def _write(self, variant: BuiltVariant, winners: Sequence[Winner]) -> None:
        """Write library and flags; without winners and rewrite there is no library."""
        flags = list(variant.model.flags if winners else variant.untuned_flags)
        library = self.folder / LIBRARY
        if winners or variant.variant.rewrite:
            strategies = [_strategy(winner, self.target) for winner in winners]
            _replace(library, build_library(strategies, variant.variant.rewrite))
            flags += library_flags(library)
        else:
            library.unlink(missing_ok=True)
        _replace(self.folder / FLAGS, write_response_file(flags))

    def _failing_alone(self, variant: BuiltVariant, winners: Mapping[str, Winner]) -> list[str]:
        """Return the task keys of the scripts with which alone the program does not compile."""
        failing = []
        for key, winner in winners.items():
            self._write(variant, [winner])
            try:
                compile_to_bytes(self.model, (f"@{self.folder / FLAGS}",))
            except ModelCompileError:
                failing.append(key)
        return failing

    def _measure(self, variant: BuiltVariant, winners: Mapping[str, Winner], vmfb: bytes) -> ProgramResult:
        """Measure the emitted program, interleaved with plain ``iree-compile`` and the variants that may be as fast."""
        default, *others = [built for built in self.variants if built.timing is not None]
        rivals, slow = rivals_of(variant, winners.values(), others)
        programs = {built.variant.name: built.vmfb for built in rivals}
        timings = measure_program(self.runner, default.model, default.vmfb, programs, vmfb)
        known = {built.variant.name: built.timing.ratio for built in slow if built.timing is not None}
        ratios = {default.variant.name: 1.0, **timings.others, **known}
        return ProgramResult(timings.untuned, timings.emitted, ratios, variant.variant.name, timings.verified)


def _least(winners: Mapping[str, Winner]) -> str:
    """Return the task key of the script that saves the least time per run of the model."""
    saved = {key: w.timing.median_s * (w.timing.ratio - 1) * w.task.weight for key, w in winners.items()}
    return min(saved, key=saved.__getitem__)


def write_summary(folder: Path, result: TuneResult) -> None:
    """Write ``summary.json``."""
    _replace(folder / SUMMARY, json.dumps(result.to_json(), indent=2) + "\n")


def _strategy(winner: Winner, target: Target) -> Strategy:
    timing = winner.timing
    assert winner.task.dispatch is not None
    provenance = {
        "dispatch": winner.task.name,
        "task": winner.task.key,
        "ops": describe(winner.task.dispatch),
        "target": f"{target.name} {target.processor}",
        "target_key": target.key,
        "versions": f"mlir-sched {__version__}, iree-compiler {target.compiler}",
        "speedup": f"{timing.ratio:.3f} ({timing.ratio_low:.3f} to {timing.ratio_high:.3f})",
        "median_us": f"{timing.median_s * 1e6:.2f} ({timing.low_s * 1e6:.2f} to {timing.high_s * 1e6:.2f})",
        "seed": str(winner.seed),
    }
    return Strategy(winner.symbol, winner.task.source, winner.space, winner.trace, provenance)


def _replace(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text)
    temporary.replace(path)
