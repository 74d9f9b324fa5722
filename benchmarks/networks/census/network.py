"""The census of one network, exported, compiled, tuned and compared as far as is asked, and its programs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.networks.census.counting import AS_IT_IS, REWRITTEN, TUNED, NetworkCensus, ProgramCensus, census_of
from benchmarks.networks.comparison import Setting, compare_network, export, parameters_of, tune_network
from mlir_sched.deployment import compile_tuned
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.building import build_variant, profiled_first, try_variant
from mlir_sched.program.plan import Flags, Placement, Plan
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.programs import Source
from mlir_sched.program.variants.rewritten import RewrittenVariants, flagged_variants, rewriting
from mlir_sched.space.space import Space
from mlir_sched.targets.target import LOCAL_SYNC, Target
from mlir_sched.tasks import extract
from mlir_sched.tuned_folder.folder import TunedFolder, read_tuned_folder


@dataclass(frozen=True)
class UntunedPrograms:
    """The programs of a network without scripts.

    Attributes:
        default: The program as it is, repaired where IREE is known to compile it wrong.
        rewritten: The program with the most rewrites that IREE compiles; None where no rewrite applies.
        left_out: Why programs with more rewrites do not compile, and rewrites could not be tried, by name.
        internal_errors: mlir-sched's own errors, a line each.
    """

    default: BuiltVariant
    rewritten: BuiltVariant | None
    left_out: Mapping[str, str]
    internal_errors: tuple[str, ...]


def take_census(name: str, setting: Setting, *, tuned: bool = False, compared: bool = False) -> NetworkCensus:
    """Return the census of a network.

    Args:
        setting: How networks are tuned and compared, and the folder with their exports.
        tuned: Whether to tune the network, too.
        compared: Whether to compare the tuned network with engines.

    Raises:
        UserError: IREE cannot compile the network.
        ModelCompileError: IREE cannot compile the network.
        PeerError: The network cannot be exported, or an engine cannot run it.
        WrongResultError: An engine's results differ from those of the others.
    """
    folder = (setting.folder / name).resolve()
    export(name, folder, setting.engines)
    source = Source(folder / "model.mlir", setting.target, parameters_of(folder))
    untuned = untuned_programs(source)
    programs = dict(_untuned(untuned, setting.target))
    result = compare_network(name, setting) if compared else None
    if tuned:
        tune_network(folder, setting)
        programs[TUNED] = _tuned(source, setting.tuned(folder))
    return NetworkCensus(name, programs, untuned.left_out, untuned.internal_errors, result)


def _untuned(untuned: UntunedPrograms, target: Target) -> Iterator[tuple[str, ProgramCensus]]:
    space = Space.default(target)
    for name, built in ((AS_IT_IS, untuned.default), (REWRITTEN, untuned.rewritten)):
        if built is not None:
            yield name, census_of(built.variant.name, built, space, target)


def _tuned(source: Source, tuned: Path) -> ProgramCensus:
    """Return the census of the program that a tuned folder makes of a network."""
    folder = read_tuned_folder(tuned)
    built = profiled_first(tuned_program(source, folder), source.target)
    return census_of(folder.summary["program"]["variant"], built, Space.default(source.target), source.target)


def untuned_programs(source: Source) -> UntunedPrograms:
    """Compile a network without scripts, and profile it.

    Raises:
        UserError: The file is no program that can be tuned.
        ModelCompileError: IREE does not compile it.
    """
    default, *_ = flagged_variants(source.target)
    with rewriting(source.path, source.target) as found:
        built, rewrites = build_variant(source.path, source.target, default, source.parameters), found()
    if rewrites.repair.script is not None:
        built = build_variant(source.path, source.target, rewrites.repair.of(default), source.parameters)
    rewritten, left_out, errors = _most_rewritten(source, rewrites, built)
    every = [each for each in (built, rewritten) if each is not None]
    errors = [*rewrites.internal_errors, *errors, *(text for each in every for text in each.model.internal_errors)]
    first, *others = (profiled_first(each, source.target) for each in every)
    known = {**rewrites.left_out, **left_out}
    return UntunedPrograms(first, others[0] if others else None, known, tuple(map(_in_short, errors)))


def tuned_program(source: Source, folder: TunedFolder) -> BuiltVariant:
    """Return what a tuned folder makes of a program, taken apart into its dispatches; it is neither timed nor profiled.

    Raises:
        UserError: The folder is not one of this program.
        ModelCompileError: IREE does not compile it.
    """
    flags = tuple(flag for flag in folder.flags if flag not in source.target.flags)
    model = extract(source.path, source.target, flags, folder.library, parameters=source.parameters)
    with temporary_folder() as name:
        output = Path(name) / "program.vmfb"
        compile_tuned(source.path, folder.path, output)
        vmfb = output.read_bytes()
    alone = folder.summary["program"]["device"] == LOCAL_SYNC
    plan = Plan(own_flags=Flags(values=flags), placement=Placement.CALLING_THREAD if alone else Placement.THREADS)
    return BuiltVariant(Variant(plan), model, vmfb, None, folder.flags)


def _most_rewritten(
    source: Source, rewrites: RewrittenVariants, default: BuiltVariant
) -> tuple[BuiltVariant | None, dict[str, str], list[str]]:
    """Return the program with the most rewrites that compiles, why others do not, and errors of mlir-sched's own."""
    left_out, errors = dict[str, str](), list[str]()
    for variant in sorted(rewrites.variants, key=lambda variant: -len(variant.plan.rewrites)):
        attempt = try_variant(source.path, source.target, variant, source.parameters, default.model)
        if attempt.built is not None:
            return attempt.built, left_out, errors
        left_out[variant.name] = attempt.why
        errors += [attempt.internal_error] if attempt.internal_error else []
    return None, left_out, errors


def _in_short(traceback: str) -> str:
    """Return the beginning of a traceback, which names what was lost, and its last line."""
    return f"{traceback.partition(': ')[0]}: {traceback.strip().splitlines()[-1]}"
