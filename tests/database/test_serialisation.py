"""Dispatches and targets as JSON text: what comes back is equal, and of equal types throughout."""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from enum import StrEnum
from pathlib import Path

import pytest
from fixed_targets import FIXED, FIXED_CUDA, FIXED_ROCM, FIXED_VULKAN
from folders import ROOT
from replayed_run import matmul_dispatch

from mlir_sched.database.serialisation import dump, load
from mlir_sched.payload import Dispatch
from mlir_sched.targets.devices.cuda_devices import ARCHITECTURES
from mlir_sched.targets.target import MatrixUnit, Target
from mlir_sched.tasks import extract

MODELS = sorted((ROOT / "benchmarks" / "models").glob("*.mlir"))
MATRICES = frozenset(MatrixUnit(rows, 16, 16, "f16", "f32") for rows in (8, 16, 32))
LIMITS = FIXED_VULKAN.gpu
assert LIMITS is not None
TARGETS = {
    "cpu": replace(FIXED, flags=("--a=ü", "-b"), machine=(("cpu", 'an "AMD"'), ("runtime", "3.13.0"))),
    "vulkan": replace(FIXED_VULKAN, gpu=replace(LIMITS, cooperative_matrices=MATRICES)),
    "cuda": replace(FIXED_CUDA, gpu_resources=ARCHITECTURES["sm_90"].resources),
    "rocm": FIXED_ROCM,
}


def assert_same(found: object, expected: object) -> None:
    """Require that two values are equal, and so are the types of all that they hold."""
    assert type(found) is type(expected)
    if is_dataclass(expected):
        for each in fields(expected):
            assert_same(getattr(found, each.name), getattr(expected, each.name))
    elif isinstance(found, frozenset) and isinstance(expected, frozenset):
        assert_same(tuple(sorted(found)), tuple(sorted(expected)))
    elif isinstance(found, tuple) and isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_same(one, other)
    else:
        assert found == expected


@pytest.mark.promise
@pytest.mark.sweep("landing", keep="conv2d_bias_norm_relu")
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_dispatch_of_the_benchmarks_comes_back(extracted_once: None, here: Target, path: Path) -> None:
    tasks = extract(path, here).tasks
    assert tasks
    for dispatch in filter(None, (task.dispatch for task in tasks)):
        found = load(Dispatch, dump(dispatch))
        assert_same(found, dispatch)
        assert hash(found) == hash(dispatch)


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_every_kind_of_target_comes_back(target: Target) -> None:
    found = load(Target, dump(target))
    assert_same(found, target)
    assert found.key == target.key


def test_what_a_dispatch_remembers_is_not_written() -> None:
    dispatch, fresh = matmul_dispatch(8, 16, 32), matmul_dispatch(8, 16, 32)
    assert dispatch.consumers(0)
    assert dispatch.root.contraction_dims.k
    assert dump(dispatch) == dump(fresh)
    assert load(Dispatch, dump(dispatch)).consumers(0) == dispatch.consumers(0)


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True)
class Leaf:
    value: int | float | str | Colour | None


@dataclass(frozen=True)
class Named(Leaf):
    name: str


@dataclass(frozen=True)
class Tree:
    parts: tuple[Leaf | Named, ...]
    sizes: tuple[int, ...] | int


def test_numbers_texts_and_subclasses_of_unions_stay_what_they_are() -> None:
    parts = (Leaf(1), Leaf(1.0), Leaf(0.1 + 0.2), Leaf("1"), Leaf(None), Leaf(2**70), Named(3, "three"))
    for tree in (Tree(parts, 4), Tree((), (4, 5))):
        assert_same(load(Tree, dump(tree)), tree)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "its text: Invalid JSON"),
        ("[" * 100_000, "its text: Invalid JSON"),
        ("[]", "its text: "),
        ("{}", "ops: Field required"),
        ('{"ops": [], "results": ["0"]}', "results.0: "),
        ('{"ops": [], "results": [0.5]}', "results.0: "),
        ('{"ops": [{"index": 0, "name": "a", "kind": "b"}], "results": [0]}', "ops.0.kind: "),
    ],
)
def test_what_is_no_dispatch_is_refused_in_one_short_line(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=f"^no Dispatch: {why}") as caught:
        load(Dispatch, text)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


def test_what_would_not_come_back_is_not_written() -> None:
    with pytest.raises(ValueError, match="int"):
        dump(replace(FIXED, cores=1.5))  # type: ignore[arg-type]
