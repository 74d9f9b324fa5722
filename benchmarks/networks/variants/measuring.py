"""What every variant of a network takes to be compiled and timed, and how fast it is without scripts."""

import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.networks.comparison import parameters_of
from mlir_sched.errors import UserError
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.profile_features import profile_features
from mlir_sched.program.variants.programs import MeasuredPrograms, Programs, Source
from mlir_sched.program.variants.rewritten import flagged_variants
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets.target import Target


@dataclass(frozen=True)
class MeasuredVariant:
    """One variant beside the default.

    Attributes:
        name: Its name.
        build_s: Seconds to compile it and take it apart.
        timing_s: Seconds to check and time it beside the default alone.
        ratio: How many times as fast as the default it is without scripts; None where it does not compete.
        why: Why it does not compete.
    """

    name: str
    build_s: float
    timing_s: float = 0.0
    ratio: float | None = None
    why: str = ""

    @property
    def compiles(self) -> bool:
        """Whether it was compiled, and so took the place of another one; its numbers may be wrong."""
        return self.timing_s > 0.0


@dataclass(frozen=True)
class MeasuredNetwork:
    """All variants of one network on inputs of one size.

    Attributes:
        network: Its name.
        part: What the lengths of its inputs are divided by.
        features: Where the time of the default goes.
        call_s, build_s: Seconds per call of the default, and to compile it and take it apart.
        variants: All others.
    """

    network: str
    part: int
    features: dict[str, float]
    call_s: float
    build_s: float
    variants: tuple[MeasuredVariant, ...]


def measured(network: str, part: int, folder: Path, target: Target) -> MeasuredNetwork:
    """Compile and time every variant of an exported network, as a run does that leaves none out.

    Raises:
        UserError: IREE cannot compile the network, its numbers cannot be checked, or there is no profile of it.
    """
    source = Source(folder / "model.mlir", target, parameters_of(folder))
    options = RunnerOptions.for_device(target.driver, threads=target.cores).first_look
    default, *flagged = flagged_variants(target)
    with MeasuredPrograms.open(source, options) as programs, programs.rewriting() as found:
        built = programs.build(default)
        rewritten = found()
        if rewritten.repair.script is not None:
            built = programs.build(rewritten.repair.of(default))
        first = programs.profiled_first(programs.first(built))
        if first.profile is None:
            raise UserError(f"{network}: IREE records no profile of it, from which variants are predicted")
        others = (*map(rewritten.repair.of, flagged), *rewritten.variants)
        variants = tuple(_measured(variant, first, programs) for variant in others)
    return MeasuredNetwork(
        network, part, profile_features(first, target), first.profile.total_s, _rounded(built.build_s), variants
    )


def _measured(variant: Variant, first: BuiltVariant, programs: Programs) -> MeasuredVariant:
    start, name = time.monotonic(), variant.name
    attempt = programs.attempt(variant, first.model)
    build_s = _rounded(time.monotonic() - start)
    if attempt.built is None:
        return MeasuredVariant(name, build_s, why=attempt.why)
    start = time.monotonic()
    (_, timed), failed = programs.time([first, attempt.built])
    timing_s = _rounded(time.monotonic() - start)
    ratio = _rounded(timed.timing.ratio) if timed.timing else None
    return MeasuredVariant(name, build_s, timing_s, ratio, failed.get(name, ""))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
