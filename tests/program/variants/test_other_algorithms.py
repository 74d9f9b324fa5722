"""Other algorithms for convolutions of a network: what each changes, and the program with some of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest
from channels_first_networks import SHAPES, two_shapes
from plans import convolution_sites, flagged
from rewriting import rewritten_variants, run

from mlir_sched.program.building import build_variant
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.other_algorithms import Algorithms, OtherAlgorithm
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.variants.weight_bound import TABLES_BYTES
from mlir_sched.runner import RunnerOptions

pytestmark = pytest.mark.promise


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("network") / "model.mlir"
    path.write_text(two_shapes())
    return path


@pytest.fixture(scope="module")
def default(path: Path) -> BuiltVariant:
    return build_variant(path, cases.TARGET, flagged("default"), ())


@pytest.fixture(scope="module")
def layout(path: Path) -> BuiltVariant:
    (variant,) = (v for v in rewritten_variants(path, cases.TARGET).variants if v.name == "channels_last")
    return build_variant(path, cases.TARGET, variant, ())


@pytest.fixture(scope="module")
def algorithms(path: Path, default: BuiltVariant) -> Algorithms:
    times = partial(MeasuredPrograms.open, Source(path, cases.TARGET), RunnerOptions())
    return Algorithms(path, cases.TARGET, default, times, convolution_sites(*SHAPES))


@pytest.fixture(scope="module")
def found(algorithms: Algorithms, layout: BuiltVariant) -> Sequence[OtherAlgorithm]:
    return algorithms.alternatives(layout)


@pytest.mark.landing
def test_every_shape_has_an_alternative_that_takes_its_dispatch_away(
    found: Sequence[OtherAlgorithm], layout: BuiltVariant
) -> None:
    assert tuple(alternative.site for alternative in found) == convolution_sites(*SHAPES)
    calls = {task.key: task.weight for task in layout.model.tasks}
    for alternative, convolutions in zip(found, (2, 1), strict=True):
        assert sorted(alternative.gone.values()) == [convolutions], "one dispatch, of all convolutions of the shape"
        assert alternative.gone.keys() <= calls.keys()
        scripted = [task for task in alternative.made if task.dispatch is not None]
        assert len(scripted) == 4, "image by rows, image by columns, products, result"
        assert {task.weight for task in scripted} == {convolutions}
        assert not {task.key for task in alternative.made} & calls.keys()
    assert found[0].name == "winograd(16x16x32x32)"


@pytest.mark.landing
def test_flags_of_the_program_alone_do_not_tell_tasks_apart(layout: BuiltVariant, composed: BuiltVariant) -> None:
    assert composed.untuned_flags != layout.untuned_flags
    assert {task.flags for task in composed.model.tasks} == {task.flags for task in layout.model.tasks}


@pytest.fixture(scope="module")
def composed(algorithms: Algorithms, layout: BuiltVariant) -> BuiltVariant:
    return algorithms.compose(layout, convolution_sites(*SHAPES))


def test_the_composed_program_has_the_dispatches_of_its_alternatives(
    composed: BuiltVariant, layout: BuiltVariant, found: Sequence[OtherAlgorithm]
) -> None:
    calls = {task.key: task.weight for task in layout.model.tasks}
    for alternative in found:
        for key, number in alternative.gone.items():
            calls[key] -= number
        for task in alternative.made:
            calls[task.key] = calls.get(task.key, 0) + task.weight
    assert {task.key: task.weight for task in composed.model.tasks} == {key: n for key, n in calls.items() if n}
    further_bytes = composed.model.weight_bytes - layout.model.weight_bytes
    apart = sum(alternative.further_bytes for alternative in found)
    assert 0 < further_bytes <= apart < further_bytes + TABLES_BYTES, "filters are larger; sites share tables"


def test_the_composed_program_is_timed_and_computes_the_same(composed: BuiltVariant, default: BuiltVariant) -> None:
    assert composed.variant.name == f"channels_last+winograd({','.join(SHAPES)})"
    assert composed.timing is not None, "its numbers were checked before it was timed"
    image = np.random.default_rng(0).standard_normal((1, 32, 16, 16)).astype(np.float32)
    expected = run(default.vmfb, [image])
    np.testing.assert_allclose(run(composed.vmfb, [image]), expected, atol=1e-4 * np.abs(expected).max())


def test_only_a_program_whose_layout_is_settled_has_other_algorithms(
    algorithms: Algorithms, default: BuiltVariant
) -> None:
    assert algorithms.alternatives(default) == ()


def test_an_algorithm_saves_what_its_dispatches_take_less(found: Sequence[OtherAlgorithm]) -> None:
    (alternative, _) = found
    ((gone, calls),) = alternative.gone.items()
    call_s = {gone: 8e-3} | {task.key: 1e-3 for task in alternative.made if task.dispatch is not None}
    assert alternative.keys >= call_s.keys()
    assert alternative.saved_s(call_s) == pytest.approx(calls * 4e-3)
    assert alternative.saved_s(call_s | {gone: 3e-3}) == pytest.approx(calls * -1e-3)
