"""Variants are predicted from the programs that stores have, once per run, and only where there are enough of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from plans import flagged
from replayed_run import TARGET, matmul_dispatch, task_of
from speedups import timing

from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram, measuring_context
from mlir_sched.program.plan import Plan
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.rewrites import cpu_rewrites
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.profile_features import profile_features
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.variant_choice import VariantChoice
from mlir_sched.tuning.variant_prediction import LEAST_PROGRAMS, KnownPrograms

CONTEXT = measuring_context(TARGET)
TASK = task_of("product", matmul_dispatch(64, 128, 32))
DEFAULT = BuiltVariant(
    flagged("default"),
    Model("model.mlir", (), (TASK,), ()),
    b"",
    timing(1e-3, 1.0),
    (),
    ProgramProfile({"product": 1e-3}, {"product": 1}),
)
BY_NAME = {plan.name: Variant(plan) for plan in map(Plan, cpu_rewrites(1))}
VARIANTS = [flagged("O3"), *(BY_NAME[name] for name in (LAYOUT, "contiguous_filters"))]
PREDICTING = TuneOptions(minutes=1.0, predict_variants=True)


def programs(
    ratios: Mapping[str, float], count: int = LEAST_PROGRAMS, first: int = 0, context: str = CONTEXT
) -> Iterator[StoredProgram]:
    for number in range(first, first + count):
        yield StoredProgram(context, (f"task {number}",), {}, 1.0, profile_features(DEFAULT, TARGET), ratios)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.mlir"
    path.write_text("module {}")
    return path


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RecordStore]:
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        yield store


def fill(store: RecordStore, found: Iterator[StoredProgram]) -> None:
    for each in found:
        store.keep_program(each)


def choice(
    model: Path, store: RecordStore, options: TuneOptions = PREDICTING, user_file: Path | None = None
) -> VariantChoice:
    return VariantChoice.of(model, TARGET, options, store, 0.0, user_file=user_file)


def test_other_programs_say_which_variants_are_compiled(model: Path, store: RecordStore) -> None:
    fill(store, programs({"O3": 0.5, LAYOUT: 3.0, "contiguous_filters": 2.9}))
    found = choice(model, store).foreseen(DEFAULT, VARIANTS)
    assert found is not None
    assert found.order == (LAYOUT, "contiguous_filters")
    assert found.ratios == pytest.approx({"O3": 0.5, LAYOUT: 3.0, "contiguous_filters": 2.9})
    assert found.programs == LEAST_PROGRAMS


def test_nothing_is_predicted_unless_that_is_asked_for_and_enough_is_known(model: Path, store: RecordStore) -> None:
    fill(store, programs({LAYOUT: 3.0}, LEAST_PROGRAMS - 1))
    few = choice(model, store)
    assert not few.foresees
    assert few.foreseen(DEFAULT, VARIANTS) is None
    fill(store, programs({LAYOUT: 3.0}))
    assert choice(model, store, replace(PREDICTING, seed=1)).foresees
    assert not choice(model, store, replace(PREDICTING, predict_variants=False)).foresees
    assert not choice(model, store, replace(PREDICTING, fresh=True)).foresees
    assert not choice(model, store).foresees, "a run that goes on stays without"


def test_a_run_that_goes_on_predicts_what_it_did_before(model: Path, store: RecordStore) -> None:
    fill(store, programs({"O3": 0.5, LAYOUT: 3.0, "contiguous_filters": 2.9}))
    first = choice(model, store).foreseen(DEFAULT, VARIANTS)
    fill(store, programs({"O3": 9.0, LAYOUT: 0.1, "contiguous_filters": 0.1}))
    assert choice(model, store).foreseen(DEFAULT, VARIANTS) == first
    other = choice(model, store, replace(PREDICTING, seed=1)).foreseen(DEFAULT, VARIANTS)
    assert other is not None
    assert other.order == ("O3",)


@pytest.mark.parametrize(
    ("other", "counts"), [(replace(TARGET, machine=(("cpu", "another"),)), False), (replace(TARGET, cores=7), True)]
)
def test_programs_of_this_machine_on_any_number_of_threads_count(
    other: Target, counts: bool, store: RecordStore
) -> None:
    fill(store, programs({LAYOUT: 3.0}, context=measuring_context(other)))
    fill(store, (replace(each, variants={}) for each in programs({}, first=20)))
    fill(store, (replace(each, features={}) for each in programs({LAYOUT: 3.0}, first=40)))
    assert KnownPrograms(store, None, CONTEXT).count == (LEAST_PROGRAMS if counts else 0)


def test_the_users_store_counts_too_and_one_that_is_damaged_costs_a_note(
    model: Path, store: RecordStore, tmp_path: Path
) -> None:
    file, notes = tmp_path / "user.sqlite", list[str]()
    with RecordStore.open(file) as users:
        fill(users, programs({LAYOUT: 3.0}, LEAST_PROGRAMS - 2))
    fill(store, programs({LAYOUT: 3.0}, 2, first=50))
    assert choice(model, store, user_file=file).foresees
    file.write_bytes(b"no database")
    known = KnownPrograms(store, file, CONTEXT, note=notes.append)
    assert len(known.all) == known.count == 2
    assert len(notes) == 1
    assert "not predicted from your store" in notes[0]


@pytest.mark.parametrize("odd", ["", "odd", "an odd one, x=1", "cpu=here"])
def test_programs_whose_context_cannot_be_read_are_left_out_and_counted(odd: str, store: RecordStore) -> None:
    fill(store, programs({LAYOUT: 3.0}, 2, first=50, context=odd))
    fill(store, programs({LAYOUT: 3.0}))
    notes = list[str]()
    assert KnownPrograms(store, None, CONTEXT, note=notes.append).count == LEAST_PROGRAMS
    assert notes == ["variants are not predicted from 2 programs whose context cannot be read"]


def test_a_program_counts_once_on_however_many_threads_and_under_whatever_bound(store: RecordStore) -> None:
    threads = [measuring_context(replace(TARGET, cores=cores)) for cores in range(1, LEAST_PROGRAMS + 1)]
    bounds = [measuring_context(TARGET, max_weights=f"{bound}") for bound in range(1, LEAST_PROGRAMS + 1)]
    for context in (*threads, *bounds):
        fill(store, programs({LAYOUT: 3.0}, 1, context=context))
    known = KnownPrograms(store, None, CONTEXT)
    assert len(known.all) == LEAST_PROGRAMS, "one per number of threads"
    assert known.count == 1


def test_what_fresh_starts_measured_of_a_program_is_put_together_and_the_last_one_counts(
    store: RecordStore, tmp_path: Path
) -> None:
    file = tmp_path / "user.sqlite"
    with RecordStore.open(file) as users:
        for number in range(LEAST_PROGRAMS):
            context = measuring_context(TARGET, generation=number)
            fill(users, programs({LAYOUT: 3.0 + number, f"variant {number}": 1.0}, 1, context=context))
    known = KnownPrograms(store, file, CONTEXT)
    (found,) = known.all
    assert found.variants == {LAYOUT: 2.0 + LEAST_PROGRAMS} | {f"variant {n}": 1.0 for n in range(LEAST_PROGRAMS)}
    assert known.count == 1


def test_a_run_that_goes_on_and_knows_less_predicts_nothing(model: Path, store: RecordStore, tmp_path: Path) -> None:
    file = tmp_path / "user.sqlite"
    with RecordStore.open(file) as users:
        fill(users, programs({LAYOUT: 3.0}))
    assert choice(model, store, user_file=file).foresees
    assert choice(model, store).foreseen(DEFAULT, VARIANTS) is None
    assert choice(model, store, user_file=file).foreseen(DEFAULT, VARIANTS) is None, "a third process does the same"


def test_a_fresh_start_predicts_nothing_also_when_it_goes_on(model: Path, store: RecordStore, tmp_path: Path) -> None:
    file = tmp_path / "user.sqlite"
    with RecordStore.open(file) as users:
        fill(users, programs({LAYOUT: 3.0}))
    fresh = VariantChoice.of(model, TARGET, replace(PREDICTING, fresh=True), store, 0.0, generation=1, user_file=file)
    fresh.note_costs(call_s=0.0, build_s=1.0)  # it is killed before it asks
    run = VariantChoice.of(model, TARGET, PREDICTING, store, 0.0, generation=1, user_file=file)
    run.note_costs(call_s=0.0, build_s=1.0)
    assert run.is_fresh
    assert not run.foresees
    assert not VariantChoice.of(model, TARGET, replace(PREDICTING, transfer="auto"), store, 0.0, generation=1).is_fresh
    assert VariantChoice.of(model, TARGET, PREDICTING, store, 0.0, generation=2, user_file=file).foresees


def test_what_is_missing_is_said_with_how_many_programs_there_are(model: Path, store: RecordStore) -> None:
    fill(store, programs({LAYOUT: 3.0}, LEAST_PROGRAMS - 5))
    for count in (LEAST_PROGRAMS - 5, LEAST_PROGRAMS):
        fill(store, programs({LAYOUT: 3.0}, count))
        notes = list[str]()
        run = VariantChoice.of(model, TARGET, PREDICTING, store, 0.0, note=notes.append)
        assert not run.foresees, "a run that goes on stays without"
        assert {*notes} == {"variants are not predicted yet: 3 of at least 8 known programs"}
    notes = list[str]()
    assert VariantChoice.of(model, TARGET, replace(PREDICTING, seed=1), store, 0.0, note=notes.append).foresees
    assert not notes


def test_a_variant_that_fails_in_programs_of_a_kind_is_not_compiled(model: Path, store: RecordStore) -> None:
    fill(store, programs({"O3": 1.5, LAYOUT: 0.0, "contiguous_filters": 1.4}, LEAST_PROGRAMS))
    found = choice(model, store).foreseen(DEFAULT, VARIANTS)
    assert found is not None
    assert found.order == ("O3", "contiguous_filters")
    assert found.ratios[LAYOUT] == 0.0
