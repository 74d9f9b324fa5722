"""The llvm-cpu transform modules: which sketches a dispatch gets, what they refuse, the scripts they make."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from attention_programs import in_one_dispatch
from contraction_payloads import batch_matmul_transposed_b, matmul, matmul_bias_gelu, matvec, vecmat
from fixed_targets import FIXED, design_spaces
from payload_text import Payload
from payloads import layernorm, row_sum, transpose

from mlir_sched.compiler import CompilerPool
from mlir_sched.errors import IllegalTraceError
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.testing import check_candidates
from mlir_sched.trace import OnIllegal, Recorder, Trace
from mlir_sched.transform_scripts.llvm_cpu import ContractionTiling, LoweringConfig

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
CONTRACTION = {"contraction.registers", "contraction.cache", "lowering_config"}
SKETCHES: dict[str, set[str]] = {
    "matmul": CONTRACTION,
    "matmul_accumulating": CONTRACTION,
    "matmul_i8": CONTRACTION,
    "batch_matmul_bt": CONTRACTION,
    "vecmat": CONTRACTION,
    "matvec": CONTRACTION | {"reduction"},
    "bias_gelu": CONTRACTION,
    "two_epilogues": CONTRACTION,
    "product_over_heads": CONTRACTION,
    "row_sum": {"reduction", "lowering_config"},
    "softmax": {"reduction"},
    "layernorm": {"reduction"},
    "scale_rows": {"reduction"},
    "sum_of_squares": {"reduction"},
    "elementwise_chain": {"elementwise"},
    "transpose": {"elementwise"},
    "every_other_pixel": {"elementwise"},
    "vector_add_uneven": {"elementwise"},
}


def every_module(target: Target) -> Space:
    """Return the default space with the module that is not in it."""
    return Space.default(target).insert(LoweringConfig())


@pytest.fixture(scope="module")
def space_for(task_for: TaskFor) -> SpaceFor:
    """Return a function from a payload, or its name, to its design space with every module on the fixed machine."""
    return design_spaces(task_for, every_module(FIXED))


@pytest.mark.parametrize(("keys", "features"), [(64, 16), (56, 16), (64, 8)])
def test_an_attention_has_scripts_where_its_keys_and_features_fill_vectors(
    space_for: SpaceFor, keys: int, features: int
) -> None:
    fills = keys % 16 == features % 16 == 0
    assert space_for(Payload(in_one_dispatch(2, 16, keys, features))).sketches == (("attention",) if fills else ())


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", SKETCHES)
def test_dispatch_gets_the_sketches_that_suit_it(space_for: SpaceFor, name: str) -> None:
    assert set(space_for(name).sketches) == SKETCHES[name]


@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_vectors_of_lowering_config_are_none_that_iree_refuses(task_for: TaskFor, vector_bytes: int) -> None:
    target, dispatch = replace(FIXED, vector_bytes=vector_bytes), task_for(matmul(64, 256, 128)).dispatch
    assert dispatch is not None
    space, rng = DesignSpace(every_module(target), dispatch, target), np.random.default_rng(0)
    names = ("register_0", "register_1", "reduction_step")
    drawn = [space.sample(rng, "lowering_config").values for _ in range(200)]
    assert max(math.prod(int(str(values[name])) for name in names) for values in drawn) == 256 * vector_bytes // 4


def test_module_options_narrow_the_space(task_for: TaskFor) -> None:
    dispatch = task_for("matmul_uneven").dispatch
    assert dispatch is not None
    space = every_module(FIXED).replace("contraction", ContractionTiling(names=("registers",), tails=()))
    narrow = DesignSpace(space, dispatch, FIXED)
    assert set(narrow.sketches) == {"contraction.registers", "lowering_config"}
    trace = narrow.sample(np.random.default_rng(0), "contraction.registers")
    assert "tail" not in trace.values


REFUSED: list[tuple[Payload, str, dict[str, Value], str]] = [
    (matmul(64, 64, 64), "contraction.registers", {"rows": (16, 16), "columns": (64, 32)}, "rows = (16, 16) is not"),
    (matmul(64, 64, 64), "contraction.registers", {"workgroup_0": (1,), "rows": (4, 4)}, "not in the support"),
    (
        matmul(100, 100, 100),
        "contraction.registers",
        {
            "workgroup_1": (100,),
            "tail": "peel",
            "columns": (5,),
            "register_columns": 16,
            "rows": (50,),
            "register_rows": 4,
        },
        "columns: register tile 16 > 5",
    ),
    (
        matmul(100, 100, 100),
        "contraction.cache",
        {
            "workgroup_0": (50,),
            "tail": "mask",
            "columns": (100,),
            "register_columns": 16,
            "rows": (2,),
            "register_rows": 4,
        },
        "rows: register tile 4 > 2",
    ),
    (
        matmul_bias_gelu(512, 512, 64),
        "contraction.cache",
        {"workgroup_0": (512,), "workgroup_1": (512,)},
        "temporaries take 1048576 bytes of the 32768 on the stack",
    ),
    (
        matmul_bias_gelu(48, 96, 64),
        "contraction.cache",
        {"rows": (1, 1), "columns": (32, 16), "reduction": (64, 1)},
        "an unblocked reduction is the registers program",
    ),
    (
        matmul(4096, 16, 8),
        "contraction.cache",
        {"workgroup_0": (1,), "workgroup_1": (16,)},
        "4096 workgroups are more than 2048",
    ),
    (row_sum(64, 512), "reduction", {"workgroup_0": (64,), "rows": (16,), "lanes_512": (128,)}, "take 128 registers"),
    (
        layernorm(64, 768),
        "reduction",
        {"workgroup_0": (64,), "rows": (1,)},
        "temporaries take 199688 bytes of the 32768",
    ),
    (
        layernorm(64, 256),
        "reduction",
        {"workgroup_0": (16,), "rows": (16,), "lanes_256": (16,), "columns_2": (256,)},
        "vector instructions in a tile are more than 512",
    ),
    (
        Payload(in_one_dispatch(1, 64, 1024, 16)),
        "attention",
        {"workgroup_rows": (64,), "rows": (8,)},
        "temporaries take 33536 bytes of the 32768",
    ),
    (
        Payload(in_one_dispatch(1, 64, 64, 16)),
        "attention",
        {"workgroup_rows": (64,), "rows": (64,), "lanes": (64,), "softmax_rows": (16,)},
        "take 64 registers",
    ),
    (
        transpose(192, 160),
        "elementwise",
        {"workgroup_0": (192,), "workgroup_1": (160,), "tile_1": (16,), "vector": (192,)},
        "a tile of 192 vectors is above 64",
    ),
    (
        matmul(64, 64, 64),
        "lowering_config",
        {"distribution_0": 4, "register_0": 8},
        "distribution_0 = 4 is not in the support",
    ),
    (
        matmul(64, 64, 64),
        "lowering_config",
        {"distribution_0": 64, "register_0": 16, "distribution_1": 64, "register_1": 64},
        "register_0 = 16 is not in the support",
    ),
    (
        matmul(64, 64, 64),
        "lowering_config",
        {"distribution_0": 64, "register_0": 8, "distribution_1": 64, "register_1": 32, "reduction_step": 32},
        "reduction_step = 32 is not in the support",
    ),
]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize(("payload", "sketch", "values", "rule"), REFUSED, ids=[rule for *_, rule in REFUSED])
def test_rule_refuses(space_for: SpaceFor, payload: Payload, sketch: str, values: dict[str, Value], rule: str) -> None:
    space = space_for(payload)
    messages = set()
    for seed in range(40):
        try:
            space.run(sketch, Recorder(values, np.random.default_rng(seed), OnIllegal.REJECT))
        except IllegalTraceError as error:
            messages.add(str(error))
    assert any(rule in message for message in messages), messages


def test_unrolled_reduction_is_bounded(space_for: SpaceFor) -> None:
    space = space_for(matmul(64, 64, 64))
    rng = np.random.default_rng(0)
    for _ in range(200):
        trace = space.sample(rng, "contraction.registers")
        assert space.check(trace).notes["unrolled_vectors"] <= 512


def test_first_draws_of_a_contraction_use_the_registers(space_for: SpaceFor) -> None:
    space, rng = space_for(matmul(512, 1024, 256)), np.random.default_rng(3)
    notes = [space.check(space.sample(rng, "contraction.registers")).notes for _ in range(300)]
    assert sum(n["accumulator_registers"] >= 12 for n in notes) > 150
    assert all(n["accumulator_registers"] <= 24 for n in notes)


def test_register_tiles_hold_whole_vectors(space_for: SpaceFor) -> None:
    space, rng = space_for(matmul(96, 96, 64)), np.random.default_rng(4)
    traces = [space.sample(rng, "contraction.registers") for _ in range(100)]
    widths = {t.values["columns"][-1] for t in traces if t.values.get("tail", "divisor") == "divisor"}  # type: ignore[index]
    assert widths == {16, 32}  # 48 and 96 divide as well: LLVM moves such vectors element by element


PANEL: list[tuple[str, dict[str, Value], bool]] = [
    ("strided columns", {}, True),
    ("one tile of rows", {"rows": (16, 16)}, False),
    ("rows are not innermost", {"register_order": ("rows", "columns")}, False),
    ("peeled tail", {"tail": "peel", "rows": (32,), "register_rows": 12}, True),
]


@pytest.mark.parametrize(("values", "possible"), [case[1:] for case in PANEL], ids=[case[0] for case in PANEL])
@pytest.mark.parametrize("sketch", ["contraction.registers", "contraction.cache"])
def test_panel_where_one_copy_serves_several_rows(
    space_for: SpaceFor, sketch: str, values: dict[str, Value], possible: bool
) -> None:
    given: dict[str, Value] = {"workgroup_1": (32,), "workgroup_2": (48,), "tail": "divisor", "reduction": (64, 16)}
    given |= {"columns": (48, 16), "rows": (32, 8)} | {"register_order": ("columns", "rows")} | values
    space = space_for("batch_matmul_bt")
    found = {"columns_operand" in _drawn(space, sketch, given, seed).values for seed in range(20)}
    assert found == {possible}


def test_no_panel_for_contiguous_columns_one_step_or_above_the_stack(space_for: SpaceFor) -> None:
    given: dict[str, Value] = {"tail": "divisor", "register_order": ("columns", "rows"), "rows": (32, 8)}
    assert "columns_operand" not in _drawn(space_for("matmul"), "contraction.registers", given, 0).values
    one_step = given | {"reduction": (16, 16), "workgroup_1": (32,)}
    assert "columns_operand" not in _drawn(space_for("batch_matmul_bt"), "contraction.cache", one_step, 0).values
    deep = space_for(batch_matmul_transposed_b(2, 32, 48, 1024))  # 1024 x 16 floats are 64 KiB
    assert "columns_operand" not in _drawn(deep, "contraction.registers", given, 0).values


def _drawn(space: DesignSpace, sketch: str, given: dict[str, Value], seed: int) -> Trace:
    """Return the first legal trace with the given decisions, some of which it may not have."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        try:
            return space.run(sketch, Recorder(given, rng))[0]
        except IllegalTraceError:
            continue
    raise AssertionError(f"no legal trace of {sketch} has {given}")


GOLDENS: dict[str, tuple[str, str, dict[str, Value]]] = {
    "contraction_registers": (
        "bias_gelu",
        "contraction.registers",
        {
            "workgroup_0": (48,),
            "workgroup_1": (96,),
            "tail": "divisor",
            "columns": (96, 32),
            "rows": (24, 8),
            "cache_order": ("rows", "columns"),
            "register_order": ("columns", "rows"),
            "reduction_step": (2,),
        },
    ),
    "contraction_cache": (
        "matmul",
        "contraction.cache",
        {
            "workgroup_0": (64,),
            "workgroup_1": (48,),
            "tail": "divisor",
            "columns": (48, 16),
            "rows": (32, 8),
            "reduction": (40, 4),
            "cache_order": ("reduction", "rows", "columns"),
            "register_order": ("rows", "columns"),
        },
    ),
    "contraction_panel": (
        "batch_matmul_bt",
        "contraction.registers",
        {
            "workgroup_0": (1,),
            "workgroup_1": (32,),
            "workgroup_2": (48,),
            "tail": "divisor",
            "columns": (48, 16),
            "rows": (32, 16),
            "cache_order": ("columns", "rows"),
            "register_order": ("columns", "rows"),
            "reduction_step": (16,),
            "columns_operand": "panel",
        },
    ),
    "contraction_peel": (
        "matmul_uneven",
        "contraction.registers",
        {
            "workgroup_0": (17,),
            "workgroup_1": (33,),
            "tail": "peel",
            "columns": (33,),
            "register_columns": 16,
            "rows": (17,),
            "register_rows": 8,
            "cache_order": ("rows", "columns"),
            "register_order": ("rows", "columns"),
            "reduction_step": (1,),
        },
    ),
    "contraction_mask": (
        "matmul_uneven",
        "contraction.cache",
        {
            "workgroup_0": (17,),
            "workgroup_1": (33,),
            "tail": "mask",
            "columns": (33,),
            "register_columns": 16,
            "rows": (17,),
            "register_rows": 8,
            "reduction": (65, 1),
            "cache_order": ("reduction", "rows", "columns"),
            "register_order": ("rows", "columns"),
        },
    ),
    "reduction": (
        "softmax",
        "reduction",
        {
            "workgroup_0": (2,),
            "workgroup_1": (32,),
            "rows": (4,),
            "later_rows": "tile",
            "lanes_128": (16,),
            "columns_4": (64,),
        },
    ),
    "elementwise": (
        "transpose",
        "elementwise",
        {"workgroup_0": (96,), "workgroup_1": (160,), "tile_1": (8,), "vector": (16,), "order": ("1", "0")},
    ),
    "lowering_config": (
        "matmul_uneven",
        "lowering_config",
        {
            "distribution_0": 16,
            "register_0": 8,
            "distribution_1": 32,
            "register_1": 32,
            "reduction_step": 2,
            "peel": "yes",
        },
    ),
}


@pytest.mark.parametrize("name", GOLDENS)
def test_golden_script(space_for: SpaceFor, name: str, golden: Callable[[str, str], None]) -> None:
    payload, sketch, values = GOLDENS[name]
    space = space_for(payload)
    script = space.script(space.run(sketch, Recorder(values, on_illegal=OnIllegal.REJECT))[0])
    golden(name, script)


@pytest.mark.landing
@pytest.mark.sweep("nightly")
@pytest.mark.parametrize("tail", ["peel", "mask"])
@pytest.mark.parametrize("sketch", ["contraction.registers", "contraction.cache"])
def test_tails_of_uneven_shapes_are_right(task_for: TaskFor, here: Target, sketch: str, tail: str) -> None:
    tasks = [task_for(matmul(100, 100, 100)), task_for(matmul(17, 33, 65)), task_for(matmul_bias_gelu(41, 61, 13))]
    rng = np.random.default_rng(5)
    with Runner(RunnerOptions()) as runner, CompilerPool(tasks[0].flags) as pool:
        for task in tasks:
            assert task.dispatch is not None
            space = DesignSpace(Space.default(here), task.dispatch, here)
            traces: list[Trace] = []
            while len(traces) < 4:
                try:
                    traces.append(space.run(sketch, Recorder({"tail": tail}, rng))[0])
                except IllegalTraceError:
                    continue
            assert check_candidates(task, space, traces, pool, runner) == [None] * len(traces)


def test_vector_times_matrix_is_no_row_reduction(space_for: SpaceFor) -> None:
    assert "reduction" not in space_for(vecmat(64, 32)).sketches
    assert "reduction" in space_for(matvec(64, 32)).sketches
