"""Decisions about whole programs that earlier runs left: which are kept, and for which programs they are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import iree_cases as cases
import pytest
from channels_first_networks import SHAPES, two_shapes

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram, measuring_context
from mlir_sched.outcome import Timing
from mlir_sched.program import building
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants import programs
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.compile_policy import CHOSEN_BEFORE, CompilePolicy
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import Runner
from mlir_sched.sampling import Value
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.journal import known_decisions
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.variant_choice import VariantChoice

CONTEXT = measuring_context(cases.TARGET)
WINOGRAD = {"variant": LAYOUT, f"algorithm {SHAPES[0]}": "winograd"}


def model_of(*keys: str) -> Model:
    task = Task("", "", 1, "", (), (), None, "", ())
    return Model("model.mlir", (), tuple(replace(task, key=key) for key in keys), ())


def program(keys: str, variant: str, ratio: float = 2.0, context: str = CONTEXT) -> StoredProgram:
    return StoredProgram(context, tuple(keys), {"variant": variant}, ratio)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        yield store


def test_the_fastest_decisions_about_a_program_are_kept(store: RecordStore) -> None:
    for variant, ratio in (("a", 2.0), ("b", 3.0), ("c", 2.5)):
        store.keep_program(program("xyz", variant, ratio))
    store.keep_program(program("xy", "d", 1.5))
    assert [found.decisions["variant"] for found in store.programs(CONTEXT)] == ["d", "b"]
    assert store.programs("another machine") == ()


def test_a_newer_measurement_of_the_same_decisions_takes_the_place_of_a_lucky_one(store: RecordStore) -> None:
    for variant, ratio in (("a", 9.0), ("b", 3.0), ("a", 2.0), ("b", 3.0)):
        store.keep_program(program("xyz", variant, ratio))
    assert [(found.decisions["variant"], found.ratio) for found in store.programs(CONTEXT)] == [("b", 3.0)]


@pytest.mark.parametrize(
    ("keys", "variant"),
    [("wxyz", "all"), ("wxyv", "all"), ("wxuv", "all"), ("wstuv", None), ("k", None), ("pq", "two")],
)
def test_the_decisions_of_the_program_that_shares_most_tasks_are_known(
    store: RecordStore, keys: str, variant: str | None
) -> None:
    store.keep_program(program("wxyz", "all"))
    store.keep_program(program("pq", "two"))
    store.keep_program(program("wstuv", "elsewhere", context="another machine"))
    assert known_decisions(store, CONTEXT, model_of(*keys)).get("variant") == variant


def test_a_run_by_time_asks_once_what_is_known_and_one_by_trials_never(store: RecordStore, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("module {}")
    store.keep_program(program("xy", "O3"))
    for options, first in ((TuneOptions(minutes=1.0), {"variant": "O3"}), (TuneOptions(trials=9), {})):
        assert VariantChoice.of(path, cases.TARGET, options, store, 0.0).known(model_of("x", "y")) == first
    bounded = VariantChoice.of(path, cases.TARGET, TuneOptions(minutes=1.0, max_weights=1.2), store, 0.0)
    assert bounded.known(model_of("x", "y")) == {}, "programs of runs without a bound may be above it"
    store.keep_program(program("xy", "O2", ratio=9.0))
    resumed = VariantChoice.of(path, cases.TARGET, TuneOptions(minutes=1.0), store, 0.0)
    assert resumed.known(model_of("x", "y")) == {"variant": "O3"}


class Knowing(CompilePolicy):
    """A choice in which an earlier run decided something, without time for a second variant beside that."""

    trusts_earlier_runs = True

    def __init__(self, decisions: Mapping[str, Value], *, dominant: bool) -> None:
        self.decisions = decisions
        self.dominant = dominant

    def known(self, default: Model) -> Mapping[str, Value]:
        assert default.tasks
        return self.decisions

    def should_compile_beside(self, name: str, *, extended: bool) -> bool:
        del name, extended
        return False

    def dominates(self, name: str, *, far_faster: bool) -> bool:
        del far_faster
        return self.dominant and name == LAYOUT


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize(
    ("decisions", "dominant", "chosen"),
    [
        (WINOGRAD, True, [f"channels_last+winograd({SHAPES[0]})"]),
        ({**WINOGRAD, "algorithm 9x9x64x64": "winograd"}, True, [f"channels_last+winograd({SHAPES[0]})"]),
        ({"variant": LAYOUT}, True, []),
        ({"variant": "a rewrite of another version"}, True, []),
        ({"variant": "contiguous_filters"}, False, ["contiguous_filters"]),
    ],
)
def test_the_program_that_an_earlier_run_chose_comes_first_and_alone_in_a_short_run(
    decisions: Mapping[str, Value], dominant: bool, chosen: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(two_shapes())

    def timed(built: tuple[BuiltVariant, ...], runner: Runner) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        del runner
        return tuple(replace(b, timing=Timing(1e-3, 1e-3, 1e-3, 9, 1.0, 1.0, 1.0)) for b in built), {}

    monkeypatch.setattr(building, "with_usable_functions", lambda runner, model, compiled: model)
    monkeypatch.setattr(programs, "time_variants", timed)
    times = MeasuredPrograms(Source(path, cases.TARGET), cast("Runner", None))
    found = build_variants(times, Knowing(decisions, dominant=dominant))
    others = {built.variant.name for built in found.built} - {"default", LAYOUT}
    assert others == set(chosen)
    assert (CHOSEN_BEFORE in found.left_out.values()) == (not dominant)
    assert {*chosen} <= {*found.dominant}, "without a search what was chosen before is not compared"
