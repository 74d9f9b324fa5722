"""A rewrite with an algorithm per site is one file: once registered, the algorithm is offered, built and searched."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import iree_cases as cases
import pytest
import row_products
from contraction_payloads import matmul
from plans import flagged
from registered_rewrites import register
from replayed_run import METHOD, Heard, turns_of
from rewriting import rewritten_variants
from speedups import Speedups, timing

from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.program.building import build_variant
from mlir_sched.program.plan import Plan, Site
from mlir_sched.program.program_space import ProgramSpace
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.other_algorithms import Algorithms
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.replaying.program_state import own_flags
from mlir_sched.runner import RunnerOptions
from mlir_sched.space.space import Space
from mlir_sched.tuning.algorithm_choice import AlgorithmChoice
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.tuning_run import TuningRun
from mlir_sched.tuning.variant_search import VariantSearch

pytestmark = pytest.mark.promise

SITE = Site(row_products.Products(), "48x64x96")
NAME = "row_products+column_products(48x64x96)"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    register("row_products:Family", tmp_path, monkeypatch)
    model = tmp_path / "model.mlir"
    model.write_text(matmul(48, 64, 96).text)
    return model


@pytest.fixture
def programs(model: Path) -> tuple[BuiltVariant, BuiltVariant]:
    """The default and the rewritten program."""
    found = rewritten_variants(model, cases.TARGET)
    assert found.sites == (SITE,)
    (rewritten,) = (variant for variant in found.variants if variant.name == "row_products")
    default, built = (build_variant(model, cases.TARGET, v, ()) for v in (flagged("default"), rewritten))
    return default, replace(built, timing=timing(1e-3, 1.0))


def test_a_registered_algorithm_is_offered_built_and_searched(
    model: Path, programs: tuple[BuiltVariant, BuiltVariant], tmp_path: Path
) -> None:
    default, built = programs
    times = partial(MeasuredPrograms.open, Source(model, cases.TARGET), RunnerOptions())
    algorithms = Algorithms(model, cases.TARGET, default, times, (SITE,))
    (other,) = algorithms.alternatives(built)
    assert other.name == "column_products(48x64x96)"
    assert other.gone
    tasks = [*built.model.tasks, *other.made]
    evaluator = Speedups({task.name: 9.0 if task in other.made else 1.5 for task in tasks})
    options = TuneOptions(trials=24, round_size=4)
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        space = Space.default(cases.TARGET)
        run = TuningRun.of(options, cases.TARGET, space, store, [built], start=0.0, method=METHOD)
        search = VariantSearch.of(run, [built], Heard(), lambda _: {}, AlgorithmChoice(run, algorithms))
        found = turns_of(search, lambda _: cast(Any, nullcontext(evaluator)))
    chosen = found.best.built.variant
    assert (chosen.name, chosen.plan.algorithms, found.left_out) == (NAME, (SITE,), {})
    assert {task.name for task in other.made} & {*evaluator.measured}
    decided = ProgramSpace((Plan(), built.variant.plan), (SITE,)).trace_of(chosen.plan).values
    assert decided == {"variant": "row_products", "algorithm product 48x64x96": "columns"}


def test_the_flags_of_a_registered_rewrite_are_our_own(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert model.exists()
    assert "--iree-opt-level=O1" not in own_flags(cases.TARGET)
    monkeypatch.setattr(row_products.RowProducts, "flags", ("--iree-opt-level=O1",))
    assert "--iree-opt-level=O1" in own_flags(cases.TARGET)


@pytest.mark.parametrize(
    ("value", "complaint"),
    [("row_products:Missing", "cannot be loaded: AttributeError"), ("builtins:dict", "does not make a RewriteFamily")],
)
def test_a_registration_that_does_not_work_is_the_users_error(
    value: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register(value, tmp_path, monkeypatch)
    with pytest.raises(UserError, match=complaint):
        own_flags(cases.TARGET)
