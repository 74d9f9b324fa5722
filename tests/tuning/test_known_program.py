"""Decisions about whole programs that earlier runs left: which are kept, and for which programs they are tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import cast

import iree_cases as cases
import pytest
from channels_first_networks import SHAPES, two_shapes
from plans import convolution_sites, flagged

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram, measuring_context
from mlir_sched.outcome import Timing
from mlir_sched.program import building
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants import programs
from mlir_sched.program.variants.choosing import BuiltVariants, build_variants
from mlir_sched.program.variants.compile_policy import CHOSEN_BEFORE, CompilePolicy
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.profile_features import FEATURES
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import Runner
from mlir_sched.sampling import Value
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.journal import known_decisions, tuned_program
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


def test_variants_that_lost_are_kept_and_those_of_an_earlier_run_beside_them(store: RecordStore) -> None:
    first = replace(program("xyz", "a", 3.0), features={"f": 1.0}, variants={"a": 2.0, "b": 0.5}, algorithms={"w": 1.1})
    store.keep_program(first)
    assert store.programs(CONTEXT) == store.programs() == (first,)
    store.keep_program(replace(program("xyz", "c", 2.0), variants={"b": 0.7, "c": 1.2}, algorithms={"v": 0.9}))
    variants, algorithms = {"a": 2.0, "b": 0.7, "c": 1.2}, {"w": 1.1, "v": 0.9}
    both = replace(first, variants=variants, algorithms=algorithms)
    assert store.programs(CONTEXT) == (both,), "the decisions of the faster run stay"
    store.keep_program(replace(program("xyz", "d", 4.0), features={"f": 2.0}))
    assert store.programs(CONTEXT) == (replace(both, decisions={"variant": "d"}, ratio=4.0, features={"f": 2.0}),)


def built(variant: Variant, ratio: float, *, estimated: bool = False) -> BuiltVariant:
    found = Timing(1e-3 / ratio, 1e-3 / ratio, 1e-3 / ratio, 0 if estimated else 9, ratio, ratio, ratio)
    profile = ProgramProfile({"product": 1e-3}, {"product": 1})
    return BuiltVariant(variant, model_of("y", "x", "x"), b"", found, (), profile)


def test_a_run_keeps_what_it_measured_of_variants_without_scripts() -> None:
    layout = flagged(LAYOUT)
    winograd = replace(layout, plan=layout.plan.with_algorithms(convolution_sites("9x9x64x64")))
    variants = flagged("default"), layout, flagged("O3").in_calling_thread(), winograd
    measured = tuple(built(each, 1.0 + n) for n, each in enumerate(variants))
    run = BuiltVariants(measured, {"late": "no time"}, failed=("a", "b"))
    found = tuned_program(CONTEXT, run, cases.TARGET, WINOGRAD, 5.0, {"w": 1.3})
    assert found.task_keys == ("x", "y")
    assert (found.decisions, found.ratio, found.algorithms) == (WINOGRAD, 5.0, {"w": 1.3})
    assert found.variants == {LAYOUT: 2.0, "a": 0.0, "b": 0.0}, "those of the whole program on the run's threads"
    assert set(found.features) == set(FEATURES)


def test_the_first_time_of_a_variant_that_fails_its_proof_is_not_kept() -> None:
    run = BuiltVariants(tuple(built(flagged(name), 2.0) for name in ("default", LAYOUT, "O3")), {})
    found = tuned_program(CONTEXT, run, cases.TARGET, {}, 2.0, {}, unproven=[LAYOUT])
    assert found.variants == {"O3": 2.0}


def test_a_variant_works_or_fails_as_it_did_last(store: RecordStore) -> None:
    default, layout = built(flagged("default"), 1.0), built(flagged(LAYOUT), 2.0)
    for run in (BuiltVariants((default,), {}, failed=(LAYOUT, "a")), BuiltVariants((default, layout), {})):
        store.keep_program(tuned_program(CONTEXT, run, cases.TARGET, {}, 2.0, {}))
    (kept,) = store.programs()
    assert kept.variants == {LAYOUT: 2.0, "a": 0.0}
    fails = BuiltVariants((default,), {}, failed=(LAYOUT,))
    store.keep_program(tuned_program(CONTEXT, fails, cases.TARGET, {}, 2.0, {}))
    (kept,) = store.programs()
    assert kept.variants == {LAYOUT: 0.0, "a": 0.0}


def test_estimates_are_kept_as_no_measurement() -> None:
    variants = tuple(built(flagged(name), 2.0, estimated=True) for name in ("default", "O3"))
    found = tuned_program(CONTEXT, BuiltVariants(variants, {}, failed=("a",)), cases.TARGET, {}, 2.0, {})
    assert (found.variants, found.features) == ({}, {})


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
