"""The census of one network: exported, compiled, tuned and compared as far as is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.networks.census.counting import ProgramCensus, census_of
from benchmarks.networks.census.kept import AS_IT_IS, REWRITTEN, TUNED, NetworkCensus
from benchmarks.networks.census.programs import UntunedPrograms, tuned_program, untuned_programs
from benchmarks.networks.comparison import (
    TUNED_FOLDER,
    Setting,
    compare_network,
    export,
    parameters_of,
    tune_network,
)
from mlir_sched.program.building import profiled_first
from mlir_sched.program.variants.programs import Source
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tuned_folder.folder import read_tuned_folder


def take_census(name: str, setting: Setting, *, tuned: bool = False, compared: bool = False) -> NetworkCensus:
    """Return the census of a network.

    Args:
        name: The network.
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
        programs[TUNED] = _tuned(source, folder / TUNED_FOLDER)
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
