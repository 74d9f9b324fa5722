"""Random networks: what is generated, and that wrong rewrites of them are found, made small and kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from fixed_targets import FIXED
from fuzzed_programs import results_of
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir
from plans import Named
from registered_rewrites import register

from benchmarks.fuzz.arithmetic import convolution, dilated, pooling
from benchmarks.fuzz.comparison import difference
from benchmarks.fuzz.draft import Array
from benchmarks.fuzz.networks import command, worker
from benchmarks.fuzz.networks.convolutions import convolution_of
from benchmarks.fuzz.networks.form import Form
from benchmarks.fuzz.networks.generator import RandomNetwork, random_network
from benchmarks.fuzz.networks.joins import concatenated
from benchmarks.fuzz.networks.judgements import Fate, NetworkJudgement, PlanJudgement, cause, summary
from benchmarks.fuzz.networks.laboratory import TOGETHER, Case, Laboratory
from benchmarks.fuzz.networks.network import KIND, Network
from benchmarks.fuzz.networks.reduction import reduced
from benchmarks.kept import judged_once
from mlir_sched.compiler.worker_process import JobError
from mlir_sched.errors import CompilerError, MlirSchedError, UserError
from mlir_sched.library import RewriteScript
from mlir_sched.processes.child import ChildCrashError
from mlir_sched.program.plan import KeptSite, Plan
from mlir_sched.program.worker.rewriting import RewrittenPlans
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target

SEEDS = st.integers(min_value=0, max_value=2**63 - 1)
FORMS = [Form(), Form(2, first=False), Form(1), Form(1, first=False)]


@settings(max_examples=40, deadline=None)
@given(SEEDS)
def test_every_seed_gives_a_valid_network_of_finite_values(seed: int) -> None:
    program = random_network(seed).program
    with ir.Context(), ir.Location.unknown():
        assert ir.Module.parse(program.text).operation.verify()
    assert program.inputs, "the compiler would compute it"
    assert all(np.isfinite(array).all() for array in program.evaluate())


@settings(max_examples=5, deadline=None)
@given(SEEDS)
def test_a_seed_always_gives_the_same_network_and_numpy_agrees_with_itself(seed: int) -> None:
    program = random_network(seed).program
    assert random_network(seed).program.text == program.text
    assert difference(program, results_of(program)) == ""


def test_seeds_cover_every_kind_of_op_in_every_layout() -> None:
    texts = [random_network(seed).program.text for seed in range(90)]
    ops = (
        "depthwise_conv_2d_nchw", "conv_2d_ngchw_gfchw", "conv_2d_nhwgc_gfhwc", "conv_2d_nchw_fchw", "conv_1d_ncw",
        "conv_1d_nwc", "conv_2d_nhwc", "pooling_nchw_max", "pooling_nchw_sum", "pooling_nhwc_max", "tensor.concat",
        "insert_slice", "linalg.transpose", "extract_slice", "linalg.broadcast", "0xFF800000", "math.exp", "i64>",
        "xi1>", 'dense<"0x', "strides = dense<[2, 2]>", "strides = dense<[3",
    )  # fmt: skip
    assert [op for op in ops if not any(op in text for text in texts)] == []
    assert {len(random_network(seed).outputs) for seed in range(25)} >= {1, 2, 3}


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize(("groups", "filters"), [(1, 3), (4, 4), (2, 6)])
def test_weights_are_read_as_the_named_op_stores_them(form: Form, groups: int, filters: int) -> None:
    if groups == 2 and form.spatial == 1:
        groups, filters = 1, 5
    net, two, one = draft_of(form, (2, 4, [6, 5][: form.spatial])), [2] * form.spatial, [1] * form.spatial
    made = convolution_of(net, net.images[0], filters, two, one, two, groups)
    image, result = (form.to_first(net.arrays[name]) for name in ("arg0", made.name))
    taps = [step.value for step in net.steps if not step.read and len(step.value.shape) > 1][-1]
    bias = [net.arrays[step.value.name] for step in net.steps if not step.read and len(step.value.shape) == 1]
    per_group = filters // groups, 4 // groups
    for n, f, *place in np.ndindex(*result.shape):
        group, own = divmod(f, per_group[0])
        total = sum(array[f] for array in bias)
        for c, *tap in np.ndindex(per_group[1], *two):
            pixel = [at + 2 * step for at, step in zip(place, tap, strict=True)]
            weight = _weight(form, net.arrays[taps.name], (group, own, c), tap)
            total += image[(n, group * per_group[1] + c, *pixel)] * weight
        assert result[(n, f, *place)] == pytest.approx(total, rel=1e-5, abs=1e-5)


def _weight(form: Form, taps: Array, at: tuple[int, int, int], tap: list[int]) -> float:
    """Return a weight of a group's filter for one of the group's channels, by the rank of what is stored."""
    group, own, channel = at
    kind = taps.ndim - form.spatial
    if kind == 1:
        return float(taps[(group, *tap) if form.first else (*tap, group)])
    if kind == 2:
        return float(taps[(own, channel, *tap) if form.first else (*tap, channel, own)])
    return float(taps[(group, own, channel, *tap) if form.first else (group, own, *tap, channel)])


def test_arithmetic_is_that_of_plain_loops() -> None:
    rng = np.random.default_rng(5)
    image, taps = rng.normal(size=(2, 4, 9, 8)), rng.normal(size=(2, 3, 2, 2, 3))
    found = convolution(image, taps, [2, 1], [1, 2])
    for n, f, y, x in np.ndindex(*found.shape):
        group, own = divmod(f, 3)
        terms = [
            image[n, 2 * group + c, 2 * y + i, x + 2 * j] * taps[group, own, c, i, j] for c, i, j in np.ndindex(2, 2, 3)
        ]
        assert found[n, f, y, x] == pytest.approx(sum(terms))
    largest = pooling(np.maximum, image, [3, 2], [2, 3], [1, 1])
    for n, c, y, x in np.ndindex(*largest.shape):
        assert largest[n, c, y, x] == image[n, c, 2 * y : 2 * y + 3, 3 * x : 3 * x + 2].max()
    spread = dilated(image, [2, 3], [1, 0], [20, 25])
    assert (spread[:, :, 1:19:2, 0:24:3] == image).all()
    assert spread.sum() == pytest.approx(image.sum())


def test_a_network_is_reduced_to_what_a_finding_needs() -> None:
    network = next(each for seed in range(50) if "tensor.concat" in (each := random_network(seed)).program.text)
    small = reduced(network, lambda each: "tensor.concat" in each.program.text, 1000)
    ops = [line for line in small.program.text.splitlines() if " = " in line]
    assert len(ops) == 1
    assert small.program.evaluate()[0].shape == small.outputs[0].shape


def test_kinds_of_findings_are_named_by_the_fewest_rewrites() -> None:
    def judged(*names: str, fate: Fate = Fate.WRONG, detail: str = "") -> PlanJudgement:
        return PlanJudgement("+".join(names) or "default", names, fate, detail)

    def rejected(size: str) -> PlanJudgement:
        return judged("b(8x8)", fate=Fate.REJECTED, detail=f"compile_error: '%{size}' of tensor<{size}xf32> is bad")

    found = [
        NetworkJudgement(0, 9, (judged(fate=Fate.RIGHT), judged("a"), judged("a", "b(7x7)"))),
        NetworkJudgement(1, 5, (judged(fate=Fate.RIGHT), judged("a"), rejected("12"))),
        NetworkJudgement(2, 7, (judged(fate=Fate.MISCOMPILED), rejected("7"))),
    ]
    lines = summary(found)
    assert lines[0] == "3 networks, 8 programs"
    assert [line.split() for line in lines[2:6]] == [
        ["default", "2", "1", "0", "0", "0"], ["a", "0", "0", "0", "2", "0"],
        ["a+b", "0", "0", "0", "1", "0"], ["b", "0", "0", "2", "0", "0"],
    ]  # fmt: skip
    assert lines[6:] == [
        "WRONG NUMBERS: a: 2 networks, e.g. [1, 0]",
        "not compiled: b: compile_error: _ of tensor_ is bad: 2 networks, e.g. [1, 2]",
        "IREE's own code is wrong: default: 1 networks, e.g. [2]",
    ]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("/tmp/n.mlir:3:9: 'linalg.add' op is bad\n/tmp/n.mlir:1:1: called from", "'linalg.add' op is bad"),
        (
            "the rewrite of the program fails: Failed to apply named transform sequence.\nDiagnostic message at "
            'loc(callsite("/tmp/n.mlir":6:1 at "/tmp/n.mlir":1:1)): \'tensor.pad\' op is bad\nat loc("-":8:1): failed',
            "'tensor.pad' op is bad",
        ),
        ("Traceback (most recent call last):\n  File\nKeyError: 'x'\n", "KeyError: 'x'"),
    ],
)
def test_a_cause_has_no_place(text: str, named: str) -> None:
    assert cause(text) == named


def test_networks_that_were_judged_are_not_judged_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = list[int]()

    class Noting:
        def judge(self, network: RandomNetwork, seed: int) -> NetworkJudgement:
            judged.append(seed)
            return NetworkJudgement(seed, network.size, (PlanJudgement("default", (), Fate.RIGHT),))

    @contextmanager
    def opened(target: Target, *, flags: bool) -> Iterator[Noting]:
        yield Noting()

    monkeypatch.setattr(Laboratory, "open", opened)
    monkeypatch.setattr(command, "detect_target", lambda *_: FIXED)
    for networks in (2, 3):
        file = tmp_path / "found.jsonl"
        monkeypatch.setattr(sys, "argv", ["fuzz.networks", "--networks", str(networks), "--judgements", str(file)])
        assert command.main() == 0
    assert sorted(judged) == [0, 1, 2]
    assert sorted(json.loads(line)["seed"] for line in file.read_text().splitlines()) == [0, 1, 2]


def test_networks_are_judged_at_the_same_time(tmp_path: Path) -> None:
    both = Barrier(2)

    def judge(seed: int) -> NetworkJudgement:
        both.wait(30)
        return NetworkJudgement(seed, 1, ())

    judged = judged_once(tmp_path / "found.jsonl", range(4), NetworkJudgement, judge, "networks", jobs=2)
    assert [each.seed for each in judged] == [0, 1, 2, 3]
    assert len((tmp_path / "found.jsonl").read_text().splitlines()) == 4


def test_a_program_that_is_not_compiled_leaves_the_others_to_be_judged_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = joined_parts().program
    plans = [Plan((Named(name),)) for name in "abcdefghij"]
    right, together = [array.astype(np.float32) for array in program.evaluate()], list[str]()

    def called(self: Laboratory, flags: tuple[str, ...], job: str, *arguments: Any) -> list[list[Array]]:
        _, scripts, _ = arguments
        names = "".join(script.name for script in scripts)
        together.append(names)
        if "c" in names:
            raise CompilerError("no")
        return [[-array for array in right] if script.name == "h" else right for script in scripts]

    monkeypatch.setattr(Laboratory, "_call", called)
    laboratory = Laboratory(FIXED, tmp_path)
    found = laboratory._right(Case(program, tmp_path), [(plan, RewriteScript(plan.name, "", "", "")) for plan in plans])
    assert "".join(plan.name for plan in found) == "abdefgij"
    assert max(map(len, together)) <= TOGETHER


def test_results_that_nobody_wrote_are_not_those_of_another_plan() -> None:
    memory = np.full(2, 7.0, np.float32)  # what another plan left, which is right

    class Result:
        def to_host(self) -> Array:
            return memory

    def writes_one_of_two(values: Array) -> Result:
        memory[0] = values[0]
        if not values.any():
            memory[1] = 0.0  # as any other use of the memory would
        return Result()

    (found,) = worker._results(writes_one_of_two, [np.full(2, 7.0, np.float32)])
    assert found.tolist() == [7.0, 0.0]


@pytest.mark.parametrize(
    ("error", "default", "fates"),
    [
        (UserError("not read"), Fate.REJECTED, [Fate.REJECTED]),
        (JobError("KeyError: 'x'"), Fate.REJECTED, [Fate.REJECTED]),
        (JobError("KeyError: 'x'"), Fate.RIGHT, [Fate.RIGHT, Fate.INTERNAL]),
        (ChildCrashError("signal 11"), Fate.RIGHT, [Fate.RIGHT, Fate.REJECTED]),
    ],
)
def test_plans_that_are_lost_count_where_iree_compiles_the_network(
    error: MlirSchedError, default: Fate, fates: list[Fate], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laboratory = laboratory_without_plans(error, default, tmp_path, monkeypatch)
    assert [each.fate for each in laboratory.judge(joined_parts(), 0).plans] == fates


def test_what_cannot_be_loaded_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laboratory = laboratory_without_plans(UserError("cannot be loaded"), Fate.RIGHT, tmp_path, monkeypatch)
    with pytest.raises(UserError, match="cannot be loaded"):
        laboratory.judge(joined_parts(), 0)


def laboratory_without_plans(
    error: MlirSchedError, default: Fate, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Laboratory:
    """Return a laboratory in which plans end with an error, and IREE's own code in some way."""

    def offered(*_: object) -> RewrittenPlans:
        raise error

    monkeypatch.setattr(Laboratory, "_offered", offered)
    monkeypatch.setattr(Laboratory, "_judged", lambda *_: PlanJudgement("default", (), default))
    return Laboratory(FIXED, folder)


@pytest.mark.promise
def test_wrong_rewrites_are_found_whoever_registers_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register("planted_rewrites:Family", tmp_path, monkeypatch)
    alone, judged_alone = list[str](), Laboratory._judged

    def noted(laboratory: Laboratory, case: Case, plan: Plan, script: RewriteScript | None) -> PlanJudgement:
        alone.append(plan.name)
        return judged_alone(laboratory, case, plan, script)

    monkeypatch.setattr(Laboratory, "_judged", noted)
    with Laboratory.open(detect_target("llvm-cpu", 1), flags=True) as laboratory:
        judged = laboratory.judge(joined_parts(), 0)
        assert "same_slice" not in alone
        fates = {each.plan: each.fate for each in judged.plans}
        assert {name: fate for name, fate in fates.items() if fate is not Fate.RIGHT} == {
            "wrong_concat": Fate.WRONG, "wrong_slice": Fate.WRONG,
        }  # fmt: skip
        assert {"default", "data-tiling", "same_slice"} <= {*fates}
        for finding in judged.findings:
            command.keep(laboratory, joined_parts(), 0, finding, tmp_path / "found", 30)
    kept = {path.stem: path.read_text() for path in (tmp_path / "found").iterdir()}
    assert {*kept} == {"wrong-numbers-wrong_concat", "wrong-numbers-wrong_slice"}
    assert "tensor.concat" in kept["wrong-numbers-wrong_concat"]
    assert "extract_slice" not in kept["wrong-numbers-wrong_concat"]
    assert "tensor.concat" not in kept["wrong-numbers-wrong_slice"]


@pytest.mark.promise
def test_what_iree_does_not_get_through_is_told_from_a_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    register("planted_rewrites:FailingFamily", tmp_path, monkeypatch)
    with Laboratory.open(detect_target("llvm-cpu", 1)) as laboratory:
        plans = {each.plan: each for each in laboratory.judge(joined_parts(), 0).plans if each.fate is not Fate.RIGHT}
    assert {name: each.fate for name, each in plans.items()} == {
        "refused": Fate.REJECTED,
        "refused+same_slice": Fate.REJECTED,
        "mistaken": Fate.INTERNAL,
        "mistaken+same_slice": Fate.INTERNAL,
    }
    for name in ("refused", "refused+same_slice"):
        assert plans[name].detail.startswith("compile_error: failed to legalize"), plans[name].detail


@pytest.mark.promise
def test_a_plan_with_a_site_that_is_not_compiled_is_judged_without_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    register("planted_rewrites:Family", tmp_path, monkeypatch)
    fault, alone = KeptSite("same_slice", "1x4x6x6"), Laboratory._judged

    def judged_alone(laboratory: Laboratory, case: Case, plan: Plan, script: RewriteScript | None) -> PlanJudgement:
        if plan.name.startswith("same_slice") and fault not in plan.kept:
            return PlanJudgement(plan.name, ("same_slice",), Fate.REJECTED, "compile_error: no")
        return alone(laboratory, case, plan, script)

    monkeypatch.setattr(Laboratory, "_judged", judged_alone)
    monkeypatch.setattr(Laboratory, "_right", lambda *_: [])
    net = draft_of(Form(), (1, 8, [6, 6]))
    parts = [
        net.extract_slice(net.images[0], [0, at, 0, 0], [1, size, 6, 6], [1] * 4)
        for at, size in ((4, 4), (2, 2), (1, 3))
    ]
    network = RandomNetwork(net, tuple(net.both(part, part, "mulf", np.multiply) for part in parts)).pruned
    with Laboratory.open(detect_target("llvm-cpu", 1)) as laboratory:
        judged = laboratory.judge(network, 0)
    assert {each.plan: each.fate for each in judged.plans if each.plan.startswith("same_slice")} == {
        "same_slice": Fate.REJECTED,
        "same_slice except for same_slice(1x4x6x6)": Fate.RIGHT,
    }


def joined_parts() -> RandomNetwork:
    """Return a network that splits the channels of an image, squares each part, and joins them."""
    net = draft_of(Form(), (1, 8, [6, 6]))
    parts = [net.extract_slice(net.images[0], [0, first, 0, 0], [1, 4, 6, 6], [1] * 4) for first in (0, 4)]
    net.images = [net.both(part, part, "mulf", np.multiply) for part in parts]
    made = concatenated(net, net.images[1])
    assert made is not None
    return RandomNetwork(net, (made,)).pruned


def draft_of(form: Form, sizes: tuple[int, int, list[int]]) -> Network:
    """Return a network of an image alone, given its batch, channels and spatial sizes."""
    net = Network(np.random.default_rng(0), whole=False)
    net.form = form
    net.offered(net.argument(*form.shape(*sizes), kind=KIND))
    return net
