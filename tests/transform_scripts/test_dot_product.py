"""The dot-product module: where it applies, what it refuses, its scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from contraction_payloads import dot_products, matmul, mixed_contraction
from fixed_targets import FIXED
from payload_text import Payload

from mlir_sched.errors import IllegalTraceError
from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.runner.checks.check import Integers
from mlir_sched.runner.checks.numeric_checks import checks_for_dispatch
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.trace import OnIllegal, Recorder
from mlir_sched.transform_scripts.llvm_cpu import ContractionTiling, DotProduct, Lowering, ParallelDistribution
from mlir_sched.transform_scripts.script.reading import extract_sequence, replace_sequence, sequence_text

TaskFor = Callable[[str | Payload], Task]
MATMUL, TRANSPOSED_B = ("mk", "kn", "mn"), ("mk", "nk", "mn")
ABLE = replace(FIXED, description="+avx512f,+avx512bf16,+avx512vnni")
"""The fixed machine, with the instructions."""


def _space(task: Task, target: Target = ABLE) -> DesignSpace:
    assert task.dispatch is not None
    return DesignSpace(Space.default(target), task.dispatch, target)


APPLIES: list[tuple[str, Payload, str, bool]] = [
    ("bf16", matmul(16, 32, 24, "bf16", "f32"), "+avx512bf16", True),
    ("bf16 without the feature", matmul(16, 32, 24, "bf16", "f32"), "+avx512vnni,-avx512bf16", False),
    ("i8", matmul(16, 32, 24, "i8", "i32"), "+avx512vnni", True),
    ("i8 without the feature", matmul(16, 32, 24, "i8", "i32"), "+avx512bf16", False),
    ("f16", matmul(16, 32, 24, "f16", "f32"), ABLE.description, False),
    ("f32", matmul(16, 32, 24), ABLE.description, False),
    ("bf16 result", matmul(16, 32, 24, "bf16", "bf16"), ABLE.description, False),
    ("columns that fill no register", matmul(16, 24, 24, "bf16", "f32"), ABLE.description, False),
    ("a reduction that ends within a group", matmul(16, 32, 26, "i8", "i32"), ABLE.description, False),
    ("a vector", matmul(1, 32, 24, "i8", "i32"), ABLE.description, False),
    (
        "rows whose reduction is strided",
        mixed_contraction({"m": 16, "n": 32, "k": 24}, ("km", "kn", "mn"), "bf16"),
        ABLE.description,
        False,
    ),
]


@pytest.mark.parametrize(
    ("payload", "features", "expected"), [case[1:] for case in APPLIES], ids=[c[0] for c in APPLIES]
)
def test_applies_where_the_target_has_an_instruction_for_it(
    task_for: TaskFor, payload: Payload, features: str, expected: bool
) -> None:
    target = replace(FIXED, description=features)
    assert ("dot_product" in _space(task_for(payload), target).sketches) == expected


def test_unsigned_bytes_are_left_to_the_generic_module(task_for: TaskFor) -> None:
    signed = mixed_contraction({"m": 16, "n": 32, "k": 24}, MATMUL, "i8")
    unsigned = Payload(signed.text.replace("arith.extsi", "arith.extui"))
    assert "dot_product" in _space(task_for(signed)).sketches
    assert "dot_product" not in _space(task_for(unsigned)).sketches


def test_one_line_adds_it_to_a_space(task_for: TaskFor) -> None:
    dispatch = task_for(matmul(16, 32, 24, "bf16", "f32")).dispatch
    assert dispatch is not None
    without = Space([ContractionTiling(), ParallelDistribution(), Lowering()])
    assert "dot_product" not in DesignSpace(without, dispatch, ABLE).sketches
    assert "dot_product" in DesignSpace(without.insert(DotProduct()), dispatch, ABLE).sketches


REFUSED: list[tuple[dict[str, Value], str]] = [
    ({"rows": (16,), "columns": (32, 32)}, "16x32 accumulators take 36 registers"),
    (
        {"columns": (256, 32), "rows": (8,), "reduction": (256,)},
        "temporaries take 131072 bytes of the 32768 on the stack",
    ),
]


@pytest.mark.parametrize(("values", "rule"), REFUSED, ids=[rule for _, rule in REFUSED])
def test_rule_refuses(task_for: TaskFor, values: dict[str, Value], rule: str) -> None:
    space = _space(task_for(matmul(256, 256, 256, "bf16", "f32")))
    messages = set()
    for seed in range(40):
        try:
            space.run("dot_product", Recorder(values, np.random.default_rng(seed), OnIllegal.REJECT))
        except IllegalTraceError as error:
            messages.add(str(error))
    assert rule in messages, messages


VALUES: dict[str, Value] = {
    "workgroup_0": (16,),
    "workgroup_1": (32,),
    "columns": (32, 16),
    "rows": (2,),
    "reduction": (8,),
    "register_order": ("rows", "columns"),
}


@pytest.mark.parametrize(("kind", "maps"), [("bf16", MATMUL), ("i8", TRANSPOSED_B)])
def test_golden_script(
    task_for: TaskFor, golden: Callable[[str, str], None], kind: str, maps: tuple[str, str, str]
) -> None:
    space = _space(task_for(mixed_contraction({"m": 16, "n": 32, "k": 24}, maps, kind)))
    golden(
        f"dot_product_{kind}", space.script(space.run("dot_product", Recorder(VALUES, on_illegal=OnIllegal.REJECT))[0])
    )


def test_a_sequence_takes_its_function_along(task_for: TaskFor) -> None:
    task = task_for(mixed_contraction({"m": 16, "n": 32, "k": 24}, MATMUL, "i8"))
    space = _space(task)
    trace, _ = space.run("dot_product", Recorder(VALUES, on_illegal=OnIllegal.REJECT))
    wider, _ = space.run("dot_product", Recorder(VALUES | {"rows": (4,)}, on_illegal=OnIllegal.REJECT))
    library = build_library([TunedSequence("s", task.source, space, trace)])
    assert sequence_text(extract_sequence(library, "s")) == sequence_text(space.script(trace, "s"))
    changed = replace_sequence(library, "s", space.script(wider, "s"))
    assert sequence_text(changed, "s") == sequence_text(space.script(wider, "s"))


@pytest.mark.parametrize("name", dot_products("i8"))
def test_products_of_bytes_are_checked_over_their_full_range(task_for: TaskFor, name: str) -> None:
    dispatch = task_for(dot_products("i8")[name]).dispatch
    assert dispatch is not None
    first, *_ = checks_for_dispatch(dispatch)
    assert (first.integers, first.tolerance) == (Integers.WHOLE, 0)
