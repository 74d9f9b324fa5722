"""What is compiled to build a program and to prove it: the compilation that makes a program shows all that is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import iree_cases as cases
import pytest
from channels_first_networks import two_shapes
from marking_spaces import marking
from rewriting import write

from mlir_sched.compiler import ModelCompileError, Shown, compile_showing, compile_to_bytes, iree_compile
from mlir_sched.compiler.binary_hash import program_hash
from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.processes.executable import running_program
from mlir_sched.program.building import build_variant
from mlir_sched.program.plan import Plan
from mlir_sched.program.proof import Prover
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.rewritten import planned_variant

pytestmark = pytest.mark.promise

Compilations = list[Sequence[str]]


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> Compilations:
    """Return the commands of all compilers that are started, as they are."""
    started = Compilations()

    def noted(command: Sequence[str], *others: Any) -> Any:
        started.append(command)
        return running_program(command, *others)

    monkeypatch.setattr(iree_compile, "running_program", noted)
    return started


def marks(built: BuiltVariant) -> Mapping[str, TunedSequence]:
    """Return sequences that mark the dispatches of a program."""
    return {task.key: marking(f"s{i}", task) for i, task in enumerate(built.model.tasks) if task.dispatch}


def test_a_program_is_compiled_once_to_be_built_and_once_to_be_proven_and_is_the_users_program(
    tmp_path: Path, compilations: Compilations
) -> None:
    """The compiler evaluates the transposes of the weights, by a program of its own with dispatches like others."""
    path = write(tmp_path, two_shapes())
    variant = planned_variant(path, cases.TARGET, Plan((ChannelsLast(),)))
    built = build_variant(path, cases.TARGET, variant, ())
    assert len(compilations) == 1
    sequences = marks(built)
    proven = Prover(path, tmp_path).prove(built, sequences)
    assert len(compilations) == 2
    assert len(proven.sequences) == len(sequences) > 1
    assert {each.name: each.sequence for each in proven.applied} == {s.dispatch: s.symbol for s in sequences.values()}
    users = compile_to_bytes(path, (f"@{tmp_path / 'flags.txt'}",))
    assert program_hash(proven.vmfb) == program_hash(users)


@pytest.mark.parametrize("plan", [Plan(), Plan((ChannelsLast(),))], ids=["default", "rewritten"])
def test_a_program_without_scripts_is_proven_with_verification_too_and_is_the_users_program(
    plan: Plan, tmp_path: Path, compilations: Compilations
) -> None:
    path = write(tmp_path, two_shapes())
    variant = planned_variant(path, cases.TARGET, plan) if plan.rewrites else Variant(plan)
    proven = Prover(path, tmp_path).prove(replace(build_variant(path, cases.TARGET, variant, ()), vmfb=b""), {})
    assert ["--verify=false" in command for command in compilations] == [True, False]
    users = compile_to_bytes(path, (f"@{tmp_path / 'flags.txt'}",))
    assert program_hash(proven.compiled().vmfb) == program_hash(proven.vmfb) == program_hash(users)


def test_a_program_without_scripts_that_does_not_compile_when_it_is_proven_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, two_shapes())
    built = build_variant(path, cases.TARGET, planned_variant(path, cases.TARGET, Plan((ChannelsLast(),))), ())
    write(tmp_path, cases.MATMUL)
    with pytest.raises(ModelCompileError):
        Prover(path, tmp_path).prove(built, {})


def test_a_compilation_shows_the_rewrites_and_the_scripts_that_it_applies(tmp_path: Path) -> None:
    path, library = write(tmp_path, two_shapes()), tmp_path / "library.mlir"
    variant = planned_variant(path, cases.TARGET, Plan((ChannelsLast(),)))
    built = build_variant(path, cases.TARGET, variant, ())
    every_second = [*marks(built).values()][::2]
    library.write_text(build_library(every_second, variant.rewrite))
    found = compile_showing(path, built.model.flags, library)
    assert found.rewrites == {"channels_last": 3}
    assert {each.name: each.sequence for each in found.scripts} == {each.dispatch: each.symbol for each in every_second}


def test_a_compilation_without_a_library_shows_nothing(tmp_path: Path) -> None:
    found = compile_showing(write(tmp_path, cases.MATMUL), cases.FLAGS, None, (Shown.REWRITES,))
    assert found.vmfb
    assert (found.rewrites, found.scripts) == ({}, ())
