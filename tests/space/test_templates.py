"""Templates: what modules guess before anything is measured is legal, follows from sizes, and comes best first."""

from __future__ import annotations

import re
import runpy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, cast

import pytest
from fixed_targets import FIXED
from folders import ROOT
from replayed_run import matmul_dispatch
from rule_ops import contraction, dispatch, epilogue, matmul

from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.payload import Dispatch, LinalgOp
from mlir_sched.sampling import Value
from mlir_sched.space.design_space import MOST_TEMPLATES, DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.module import ScheduleModule, Template
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

AVX2 = replace(FIXED, vector_bytes=32, vector_registers=16, l2_bytes=1 << 18)
NEON = replace(FIXED, vector_bytes=16, cores=4, l1_bytes=1 << 16)
UNKNOWN_CACHES = replace(FIXED, l1_bytes=0, l2_bytes=0, l3_bytes=0)
MACHINES = {
    "avx512": FIXED,
    "two cores": replace(FIXED, cores=2),
    "avx2": AVX2,
    "sse": replace(AVX2, vector_bytes=16, cores=3),
    "neon": NEON,
    "many cores": replace(UNKNOWN_CACHES, cores=64),
}
PRODUCTS: Mapping[str, Dispatch] = {
    "even": matmul_dispatch(384, 512, 512),
    "primes": matmul_dispatch(197, 211, 67),
    "one row": matmul_dispatch(1, 1024, 640),
    "few columns": matmul_dispatch(300, 6, 40),
    "bias": dispatch(matmul(320, m=192, n=1000), epilogue("f32", ("arith.addf",), m=192, n=1000)),
    "columns across": dispatch(contraction({"b": 12, "m": 128, "n": 96, "k": 64}, ("bmk", "bnk", "bmn"))),
    "columns of a prime": dispatch(contraction({"b": 3, "m": 197, "n": 197, "k": 64}, ("bmk", "bnk", "bmn"))),
    "blocks": dispatch(contraction({"n": 24, "m": 196, "c": 16, "k": 40}, ("mk", "nkc", "nmc"))),
    "f64": dispatch(matmul(129, "f64", m=77, n=1000)),
    "i8": dispatch(matmul(256, "i8", "i32", ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi"), m=100, n=72)),
    "bf16": dispatch(matmul(64, "bf16", "f32", ("arith.extf", "arith.extf", "arith.mulf", "arith.addf"), m=31, n=97)),
    "1000 classes": matmul_dispatch(1, 1000, 1009),
    "huge": matmul_dispatch(65536, 50257, 768),
}
DIVIDING = ("even", "one row", "few columns", "bias", "columns across")
"""Products that two cores can share."""


def space_of(found: Dispatch, target: Target = FIXED, *modules: ScheduleModule) -> DesignSpace:
    return DesignSpace(Space([*modules, *Space.default(target).modules]), found, target)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("product", PRODUCTS)
def test_every_template_of_a_product_is_legal_as_it_is_made(product: str, machine: str) -> None:
    space = space_of(PRODUCTS[product], MACHINES[machine])
    made = [space.completed(sketch, values) for sketch, values in space.guesses()]
    assert made
    if "rows" in made[0].values:
        for trace, (_, values) in zip(made, space.guesses(), strict=True):
            taken = [each for each in trace.decisions if each.name in values]
            assert [each.value for each in taken] == [each.distribution.canonical(values[each.name]) for each in taken]
    templates = space.templates()
    assert list(templates) == list(dict.fromkeys(made))[:MOST_TEMPLATES]


def test_the_tile_follows_from_the_registers_of_the_machine() -> None:
    """Six rows of four vectors leave room for the columns and a row in 32 registers; in 16, six rows of two do."""
    first = {name: space_of(PRODUCTS["even"], MACHINES[name]).templates()[0].values for name in ("avx512", "avx2")}
    assert first["avx512"]["columns"] == (512, 64)
    assert first["avx2"]["columns"] == (512, 16)
    assert [cast("tuple[int, ...]", values["rows"])[-1] for values in first.values()] == [6, 6]


@pytest.mark.parametrize("product", DIVIDING)
def test_every_core_gets_equal_work_where_the_extents_divide(product: str) -> None:
    found = PRODUCTS[product]
    for trace in space_of(found, MACHINES["two cores"]).templates():
        workgroups = 1
        for name, value in trace.values.items():
            if name.startswith("workgroup_"):
                extent = found.root.extents[int(name.removeprefix("workgroup_"))]
                workgroups *= extent // cast("tuple[int]", value)[0]
        assert workgroups % 2 == 0


@pytest.mark.parametrize(
    ("product", "cores", "workgroup"),
    [
        (matmul_dispatch(31, 512, 512), 8, {"workgroup_0": (31,), "workgroup_1": (64,)}),
        (matmul_dispatch(384, 512, 512), 8, {"workgroup_0": (48,), "workgroup_1": (512,)}),
        (matmul_dispatch(7, 211, 64), 64, {"workgroup_0": (1,), "workgroup_1": (211,)}),
        (matmul_dispatch(1, 1000, 1280), 64, {"workgroup_1": (40,)}),
    ],
)
def test_cores_share_whole_vectors_and_few_large_parts(
    product: Dispatch, cores: int, workgroup: dict[str, Value]
) -> None:
    """31 rows of their own would be 31 workgroups for 8 cores; 125 workgroups of 8 columns would be half a vector."""
    values = space_of(product, replace(FIXED, cores=cores)).templates()[0].values
    assert {name: value for name, value in values.items() if name.startswith("workgroup_")} == workgroup


def test_a_reduction_is_summed_in_blocks_only_where_they_are_long_and_the_cache_is_known() -> None:
    """Blocks of one product would read and write all sums for every product."""
    for found, target in ((PRODUCTS["even"], UNKNOWN_CACHES), (matmul_dispatch(384, 512, 1009), FIXED)):
        assert {trace.sketch for trace in space_of(found, target).templates()} == {"contraction.registers"}
    assert "contraction.cache" in {trace.sketch for trace in space_of(PRODUCTS["even"]).templates()}


def test_a_cache_tile_has_the_rows_that_half_of_l2_holds_or_all() -> None:
    def rows(target: Target) -> Value:
        return space_of(PRODUCTS["even"], target).templates()[0].values["rows"]

    assert (rows(FIXED), rows(AVX2), rows(UNKNOWN_CACHES)) == ((192, 6), (48, 6), (384, 6))


class Guessing(ScheduleModule):
    """Schedules plain products in two programs, with templates that a test names."""

    name: ClassVar[str] = "guessing"

    def __init__(self, *templates: Template) -> None:
        self.named = templates

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> Contraction | None:
        return matchers.contraction(op, dispatch)

    def programs(self) -> Mapping[str, object]:  # type: ignore[override]
        return {"one": self.schedule, "two": self.schedule}

    def schedule(self, s: Schedule, found: Contraction) -> None:
        assert found.rows is not None
        s.sample_tile("rows", found.rows, most=8)
        s.sample_tile("columns", found.columns, power=1.0)
        if s.sample_choice("order", ("rows", "columns"), weights=(1.0, 3.0)) == "rows":
            s.require(False, "rows are never outside")

    def templates(self, found: Contraction, dispatch: Dispatch, target: Target) -> Iterator[Template]:
        yield from self.named


def templates_of(*templates: tuple[str, dict[str, Value]]) -> list[tuple[str, Value, Value]]:
    """Return (sketch, rows, columns) of the templates of a space that has only the module above."""
    space = space_of(matmul_dispatch(64, 96, 32), FIXED, Guessing(*(Template(*each) for each in templates)))
    traces = [trace for trace in space.templates() if trace.sketch.startswith("guessing")]
    return [(trace.sketch, trace.values["rows"], trace.values["columns"]) for trace in traces]


def test_what_a_template_leaves_open_is_likeliest_and_what_does_not_fit_is_repaired() -> None:
    assert templates_of(("one", {"rows": (2,)}), ("two", {"rows": (30,), "columns": (40,)})) == [
        ("guessing.one", (2,), (96,)),
        ("guessing.two", (8,), (48,)),
    ]


def test_templates_come_in_the_order_of_the_module_each_once_and_without_illegal_ones() -> None:
    given: list[tuple[str, dict[str, Value]]] = [
        ("two", {"rows": (4,)}),
        ("one", {"order": "rows"}),
        ("one", {"columns": "all"}),
        ("one", {"rows": (2,)}),
        ("two", {"rows": (4,), "unknown": 3}),
    ]
    assert templates_of(*given) == [("guessing.two", (4,), (96,)), ("guessing.one", (2,), (96,))]


def test_modules_that_guess_for_the_same_dispatch_take_turns() -> None:
    space = space_of(matmul_dispatch(64, 96, 32), FIXED, Guessing(Template("one", {}), Template("two", {})))
    first = [sketch.partition(".")[0] for sketch, _ in space.guesses()][:4]
    assert first == ["guessing", "contraction", "guessing", "contraction"]


def test_an_illegal_template_is_refused_by_name_where_a_test_asks() -> None:
    space = space_of(matmul_dispatch(64, 96, 32), FIXED, Guessing())
    with pytest.raises(IllegalTraceError, match="rows are never outside"):
        space.completed("guessing.one", {"order": "rows"})


def test_a_template_of_an_unknown_program_is_the_users_mistake() -> None:
    with pytest.raises(UserError, match="'guessing' raised ValueError: a template is of the program 'three'"):
        templates_of(("three", {}))


def test_an_exception_in_the_middle_of_the_guesses_is_the_users_mistake() -> None:
    class Raising(Guessing):
        def templates(self, found: Contraction, dispatch: Dispatch, target: Target) -> Iterator[Template]:
            yield Template("one", {})
            raise ZeroDivisionError("no registers")

    with pytest.raises(UserError, match="'guessing' raised ZeroDivisionError: no registers"):
        space_of(matmul_dispatch(64, 96, 32), FIXED, Raising()).templates()


def test_the_example_of_the_documentation_guesses_legal_candidates() -> None:
    page = (ROOT / "docs" / "transform-modules.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    (code,) = (block for block in blocks if "Template" in block)
    names: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "custom_transform_module.py"))
    exec(code, names)
    for target in MACHINES.values():
        space = space_of(matmul_dispatch(192, 256, 64), target, names["GuessedProduct"]())
        made = [space.completed(sketch, values) for sketch, values in space.guesses() if sketch == "outer_product"]
        lanes, most = target.vector_bytes // 4, 3 * target.vector_registers // 4
        tiles = [(trace.values["rows"], trace.values["columns"]) for trace in made]
        assert tiles == [((min(16, most // vectors),), (vectors * lanes,)) for vectors in (4, 2, 1)]
