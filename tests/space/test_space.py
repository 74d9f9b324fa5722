"""Spaces of transform modules: their order, who may change them, and what a design space promises of its traces."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib.metadata import EntryPoint
from itertools import permutations
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from contraction_payloads import matmul
from fixed_targets import FIXED
from payload_text import Payload
from payloads import PAYLOADS
from replayed_run import matmul_dispatch

from mlir_sched import plugins
from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.payload import Dispatch, LinalgOp, OpKind
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.features import COUNT
from mlir_sched.space.graphs import NUMBERS, OPERAND_NUMBERS
from mlir_sched.space.space import ENTRY_POINTS, Space
from mlir_sched.targets.clock import EVENTS
from mlir_sched.targets.target import Driver, Target
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.module import ScheduleModule, Sketch, Stage, Step, TransformModule
from mlir_sched.transform_scripts.schedule import Schedule

SpaceFor = Callable[[str | Payload], DesignSpace]
TaskFor = Callable[[str | Payload], Task]
DEFAULT = [
    "dot_product",
    "contraction",
    "convolution",
    "reduction",
    "attention",
    "elementwise",
    "several_results",
    "parallel_distribution",
    "lowering",
]


class Noted(TransformModule):
    """Writes down what it is asked, and extends nothing."""

    name: ClassVar[str] = "noted"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def extend(self, sketch: Sketch, op: LinalgOp, dispatch: Dispatch, target: Target) -> Iterable[Sketch]:
        self.asked.append((sketch.name, op.index))
        return (sketch,)


class Simple(ScheduleModule):
    """Schedules any dispatch by its root."""

    name: ClassVar[str] = "simple"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> LinalgOp | None:
        return op if op.index == dispatch.root.index else None

    def schedule(self, s: Schedule, found: LinalgOp) -> None:
        s.sample_int("simple_number", 1, 3)


class Raises(Simple):
    name: ClassVar[str] = "raises"

    def schedule(self, s: Schedule, found: LinalgOp) -> None:
        raise KeyError("mine")


class RaisesWhenAsked(Simple):
    name: ClassVar[str] = "raises_when_asked"

    def match(self, op: LinalgOp, dispatch: Dispatch, target: Target) -> LinalgOp | None:
        return op if op.extents[99] else None


class ForGpus(Simple):
    name: ClassVar[str] = "for_gpus"
    backends: ClassVar[tuple[str, ...]] = ("cuda",)


def names(space: Space) -> list[str]:
    return [module.name for module in space.modules]


def dispatch_of(task: Task) -> Dispatch:
    assert task.dispatch is not None
    return task.dispatch


def test_default_space_and_its_changes() -> None:
    space = Space.default(FIXED)
    assert names(space) == DEFAULT
    assert names(space.insert(Simple())) == ["simple", *DEFAULT]
    assert names(space.insert(Simple(), before="reduction"))[2:5] == ["convolution", "simple", "reduction"]
    assert names(space.insert(Simple(), after="reduction"))[3:5] == ["reduction", "simple"]
    assert names(space.replace("reduction", Simple()))[3] == "simple"
    assert names(space.remove("reduction")) == [name for name in DEFAULT if name != "reduction"]
    assert names(space) == DEFAULT


def test_wrong_changes_are_refused() -> None:
    space = Space.default(FIXED)
    with pytest.raises(UserError, match="two transform modules are named 'reduction'"):
        space.insert(space.modules[3])
    with pytest.raises(UserError, match="has no transform module 'redaction'; it has dot_product, contraction"):
        space.remove("redaction")
    with pytest.raises(UserError, match="either before or after"):
        space.insert(Simple(), before="lowering", after="lowering")


def test_backend_without_modules_is_refused() -> None:
    nowhere = Target("metal", "metal-spirv", Driver("metal", EVENTS), (), "x", "3.13.0", "a GPU", 1, 16, 64)
    with pytest.raises(UserError, match="no transform modules for the target 'metal'"):
        Space.default(nowhere)


def registered(monkeypatch: pytest.MonkeyPatch, *values: str) -> None:
    """Register things of this file as entry points."""
    entries = [EntryPoint(f"entry_{i}", f"{__name__}:{value}", ENTRY_POINTS) for i, value in enumerate(values)]
    monkeypatch.setattr(plugins, "entry_points", lambda group: [e for e in entries if e.group == group])


def test_registered_modules_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, "Simple", "ForGpus")
    assert names(Space.default(FIXED)) == ["simple", *DEFAULT]


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("Missing", r"'entry_0' \(.*Missing\) cannot be loaded: AttributeError"),
        ("names", r"cannot be loaded: TypeError"),
        ("dict", "does not make a TransformModule"),
    ],
)
def test_registration_that_does_not_work_is_the_users_error(
    monkeypatch: pytest.MonkeyPatch, value: str, complaint: str
) -> None:
    if value == "dict":
        monkeypatch.setattr(f"{__name__}.dict", dict, raising=False)
    registered(monkeypatch, value)
    with pytest.raises(UserError, match=complaint):
        Space.default(FIXED)


@pytest.mark.parametrize(("module", "line"), [(Raises(), 'raise KeyError("mine")'), (RaisesWhenAsked(), "extents[99]")])
def test_module_that_raises_is_named_with_its_line(task_for: TaskFor, module: Simple, line: str) -> None:
    number = next(i for i, text in enumerate(Path(__file__).read_text().splitlines(), 1) if line in text)

    def sample() -> None:
        space = DesignSpace(Space.default(FIXED).insert(module), dispatch_of(task_for("matmul")), FIXED)
        space.sample(np.random.default_rng(0), module.name)

    complaint = rf"module '{module.name}' raised .*test_space\.py:{number}\); mend it"
    with pytest.raises(UserError, match=complaint) as raised:
        sample()
    assert isinstance(raised.value.__cause__, Exception)


def test_modules_are_asked_in_order_about_every_op_producers_first(task_for: TaskFor) -> None:
    first, last = Noted(), Noted()
    space = Space([first, *Space.default(FIXED).modules])
    dispatch = dispatch_of(task_for("bias_gelu"))
    space.sketches(dispatch, FIXED)
    assert first.asked == [("", op.index) for op in dispatch.ops]
    Space([*Space.default(FIXED).modules, last]).sketches(dispatch, FIXED)
    assert {name for name, _ in last.asked} == {"", "contraction.registers", "contraction.cache"}
    assert [index for name, index in last.asked if name == "contraction.cache"] == [0, 1, 2]


def test_own_module_gets_distribution_and_lowering(task_for: TaskFor) -> None:
    space = DesignSpace(Space.default(FIXED).insert(Simple()), dispatch_of(task_for("matmul")), FIXED)
    assert {"simple", "contraction.cache"} <= set(space.sketches)
    trace = space.sample(np.random.default_rng(0), "simple")
    assert list(trace.values) == ["workgroup_0", "workgroup_1", "simple_number"]
    assert "iree-codegen-llvmcpu-vector-lowering-pipeline" in space.script(trace)


def test_steps_run_by_stage_whatever_the_order_they_were_added_in() -> None:
    ran: list[str] = []
    sketch = Sketch()
    for stage, label in ((Stage.LOWER, "lower"), (Stage.TILE, "a"), (Stage.DISTRIBUTE, "spread"), (Stage.TILE, "b")):
        sketch = sketch.extended(label, Step(stage, label, lambda s, label=label: ran.append(label)))  # type: ignore[misc]
    assert [step.module for step in sketch.ordered_steps] == ["spread", "a", "b", "lower"]
    assert sketch.name == "lower+a+spread+b"


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", PAYLOADS)
def test_samples_are_legal_and_reproducible(space_for: SpaceFor, name: str) -> None:
    space = space_for(name)
    first, second = (
        [space.sample(rng) for _ in range(30)] for rng in (np.random.default_rng(3), np.random.default_rng(3))
    )
    assert first == second
    for trace in first:
        space.check(trace)
        assert space.repaired(trace) == trace


def test_what_a_change_makes_impossible_is_repaired(space_for: SpaceFor) -> None:
    space, rng = space_for("matmul"), np.random.default_rng(0)
    repaired = 0
    for _ in range(60):
        trace = space.sample(rng, "contraction.registers")
        try:
            changed = space.repaired(trace.with_value("workgroup_0", (1,)))
        except IllegalTraceError:
            continue
        space.check(changed)
        assert changed.values["workgroup_0"] == (1,)
        assert changed.values["rows"] == (1, 1)
        repaired += 1
    assert repaired > 30


def test_another_tail_survives_repair_and_sizes_that_do_not_compare_with_its_own_are_drawn() -> None:
    space, rng = DesignSpace(Space.default(FIXED), matmul_dispatch(100, 120, 64), FIXED), np.random.default_rng(0)
    kept = dict.fromkeys(permutations(("divisor", "peel", "mask"), 2), 0)
    tried = dict(kept)
    for trace in (space.sample(rng, "contraction.registers") for _ in range(100)):
        for before, after in kept:
            if trace.values.get("tail") == before:
                tried[before, after] += 1
                with suppress(IllegalTraceError):
                    changed = space.repaired(trace.with_value("tail", after))
                    space.check(changed)
                    kept[before, after] += changed.values["tail"] == after
    assert all(kept[change] > tried[change] / 4 > 2 for change in kept), (kept, tried)


def test_what_breaks_a_rule_is_rejected(space_for: SpaceFor) -> None:
    space = space_for(matmul(4096, 16, 8))
    trace = space.sample(np.random.default_rng(0), "contraction.registers")
    with pytest.raises(IllegalTraceError, match="4096 workgroups are more than 2048"):
        space.repaired(trace.with_value("workgroup_0", (1,)))


def test_features_are_finite_and_of_fixed_length(space_for: SpaceFor) -> None:
    rng = np.random.default_rng(0)
    for name in PAYLOADS:
        space = space_for(name)
        rows = space.features([space.sample(rng) for _ in range(40)])
        assert rows.shape == (40, COUNT)
        assert rows.dtype == np.float32
        assert np.isfinite(rows).all()
        assert len(np.unique(rows, axis=0)) > 1
    assert space.features([]).shape == (0, COUNT)


def test_a_graph_has_operands_ops_and_levels_and_edges_inwards_and_to_consumers(space_for: SpaceFor) -> None:
    rng = np.random.default_rng(0)
    for name in PAYLOADS:
        space = space_for(name)
        ops, graphs = space.dispatch.ops, space.graphs([space.sample(rng) for _ in range(10)])
        made = sum(operand.producer is not None for op in ops for operand in op.operands)
        for graph in graphs:
            count_ops, levels, operands = graph.nodes[:, :3].sum(axis=0)
            assert graph.nodes.shape[1] == NUMBERS
            assert (count_ops, operands) == (len(ops), sum(len(op.operands) for op in ops))
            assert len(graph.edges) == operands + levels + made
            assert all(start < end for start, end in graph.edges), "a graph in the order of the ops has no cycle"
        assert len({graph.nodes.tobytes() for graph in graphs}) > 1, "graphs tell candidates apart"


def test_a_graph_says_how_operands_lie_in_memory(space_for: SpaceFor) -> None:
    product = space_for(matmul(64, 32, 16))
    (graph,) = product.graphs([product.sample(np.random.default_rng(0))])
    first = int(np.argmax(graph.nodes[:, 3 + list(OpKind).index(OpKind.CONTRACTION)]))
    lhs, rhs, result = graph.nodes[first - 3 : first, -OPERAND_NUMBERS:]
    assert [row[0] for row in (lhs, rhs, result)] == [0, 0, 1], "the last one is written"
    assert [2 ** row[6] - 1 for row in (lhs, rhs, result)] == [0, 1, 1], "steps along a row of the result"
    assert [2 ** row[7] - 1 for row in (lhs, rhs, result)] == pytest.approx([1, 32, 0]), "steps along the sum"


def test_graphs_are_remembered(space_for: SpaceFor) -> None:
    space = space_for(matmul(64, 32, 16))
    trace = space.sample(np.random.default_rng(0))
    assert space.graphs([trace])[0] is space.graphs([trace])[0]


LEGAL = 0.1
"""Smallest share of first draws that must be legal. Measured: 23 % at worst (lowering_config of a batch matmul)."""


@pytest.mark.landing
def test_share_of_legal_draws(space_for: SpaceFor, capsys: pytest.CaptureFixture[str]) -> None:
    shares: dict[str, float] = {}
    for name in PAYLOADS:
        space, rng = space_for(name), np.random.default_rng(0)
        for sketch in space.sketches:
            shares[f"{name} {sketch}"] = sum(_is_legal(space, rng, sketch) for _ in range(300)) / 300
    with capsys.disabled():
        print("\n" + "\n".join(f"{row:44} {share:4.0%}" for row, share in shares.items()))
    assert min(shares.values()) >= LEGAL


def _is_legal(space: DesignSpace, rng: np.random.Generator, sketch: str) -> bool:
    try:
        space.attempt(rng, sketch)
    except IllegalTraceError:
        return False
    return True
