"""Emission where nothing is run: estimates decide, and what is emitted says that they are estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from emission_cases import DISPATCH, OPTIONS, SPACE
from plans import flagged
from replayed_run import TARGET, task_of

from mlir_sched.emission import export
from mlir_sched.emission.export import Emission, emit
from mlir_sched.emission.finalists import Finalists, Winner
from mlir_sched.emission.sessions import EstimatedSessions
from mlir_sched.library.library import TunedSequence
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.program.proof import Proven
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.choosing import BuiltVariants
from mlir_sched.tasks import Model
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.installation import EmittedFiles
from mlir_sched.tuning.ledger import Ledger

pytestmark = pytest.mark.promise

TASK = replace(task_of("matmul", DISPATCH), key="a", name="a", may_not_run=True)


def built(name: str, seconds: float) -> BuiltVariant:
    model, timing = Model("m.mlir", (), (TASK,), (name,)), Timing.estimated(seconds, 1.0)
    return BuiltVariant(flagged(name), model, name.encode(), timing, (name,))


class Prover:
    """Proves every program."""

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        return Proven(variant, sequences, {}, EmittedFiles("", (variant.variant.name,)), b"")


def emitted(monkeypatch: pytest.MonkeyPatch, script_s: float, *, end: float = float("inf")) -> Emission:
    """Return what is emitted where the default takes a second, O3 half of it, and one script ``script_s`` of that."""
    monkeypatch.setattr(export, "Prover", lambda *_: Prover())
    timing, untuned = Timing.estimated(script_s, 0.5), Timing.estimated(0.5, 0.5)
    winners = {"a": Winner(TASK, SPACE, Trace("sketch", ()), "", "", timing, untuned, "tuned_a", 0)}
    variants, sessions = [built("default", 1.0), built("O3", 0.5)], EstimatedSessions(winners)
    found = BuiltVariants(tuple(variants), {}), variants[1], Finalists(winners)
    return emit(Path("m.mlir"), *found, OPTIONS, TARGET, Ledger(OPTIONS, until=end), sessions)


@pytest.mark.parametrize("script_s", [0.125, 0.4])
def test_scripts_that_gain_by_the_estimates_are_emitted(script_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    emission = emitted(monkeypatch, script_s)
    program = emission.program
    assert list(emission.winners) == ["a"]
    assert program.tuned.median_s == script_s
    assert program.loading is None
    assert program.tuned.ratio == pytest.approx(1 / script_s)
    assert (program.variant, program.variants) == ("O3", {"default": 1.0, "O3": 2.0})


def test_flags_that_are_as_fast_take_the_place_of_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    emission = emitted(monkeypatch, 0.5)
    assert not emission.winners
    assert (emission.program.variant, emission.program.tuned.ratio) == ("O3", 2.0)
    assert emission.reasons["a"].endswith("2.00x (estimated) with scripts, 2.00x (estimated) without")


@pytest.mark.parametrize("end", [float("inf"), 0.0])
@pytest.mark.parametrize("script_s", [0.125, 0.5])
def test_nothing_is_said_to_be_measured_or_checked(
    script_s: float, end: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = emitted(monkeypatch, script_s, end=end).program
    assert program.untuned.is_estimated
    assert program.tuned.is_estimated
    assert (program.verdict, program.device) == (Verdict.NOT_CHECKED, "")
