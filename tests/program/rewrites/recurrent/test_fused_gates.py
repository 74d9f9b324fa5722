"""Gates of recurrent networks: one dispatch per step with the products that they read, with the same results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from iree.compiler import ir
from recurrent_networks import Recurrent, assert_computed, gated_unit
from rewriting import assert_refused, compiled_to, left_out, library_for, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.rewrites.recurrent import cell_finding
from mlir_sched.program.rewrites.recurrent.cell import Cell
from mlir_sched.program.rewrites.recurrent.cell_finding import cells
from mlir_sched.program.rewrites.recurrent.fused_gates import FusedGates
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.targets.target import Target
from mlir_sched.testing import RewriteTests
from mlir_sched.transform_scripts.script.form import script_context

GRU, LSTM = (Recurrent(cell, batch=1, gates_apart=True) for cell in ("gru", "lstm"))
NETWORKS = {
    "gru": GRU,
    "lstm": LSTM,
    "gru in a loop": replace(GRU, loop=True),
    "lstm in a loop": replace(LSTM, loop=True),
    "steps first in a loop": replace(GRU, loop=True, time_first=True),
}


@contextmanager
def found(text: str) -> Iterator[list[Cell]]:
    """Give the cells of a program."""
    with script_context(), ir.Location.unknown():
        program = ir.Module.parse(text)
        yield cells(WalkedProgram(program))


@pytest.mark.parametrize("name", NETWORKS)
def test_every_step_with_a_state_is_a_cell(name: str) -> None:
    """In the first step, written out, the state is a constant: the cell is that of the products of the input."""
    network = NETWORKS[name]
    gates = 3 if network.cell == "gru" else 4
    with found(network.text()) as sites:
        assert len(sites) == (1 if network.loop else network.steps)
        handed_on = [1 if network.cell == "gru" else 2] * (len(sites) - (0 if network.loop else 1))
        assert [len(site.outputs) for site in sites] == [*handed_on, *([] if network.loop else [1])]
        assert {len(site.sums) for site in sites} == {2 * gates if network.loop else gates}
        assert {site.size for site in sites} == {network.features}


def test_a_gated_unit_of_one_row_is_a_cell() -> None:
    with found(gated_unit(rows=1)) as (site,):
        assert [run.first for run in site.sums] == [0, 8]


def test_a_single_element_is_no_run_of_what_it_is_a_slice_of() -> None:
    with found(gated_unit(rows=1, scaled=True)) as (site,):
        singles = [run for run in site.runs(site.op) if run.is_single]
        assert [list(run.value.type.shape) for run in singles] == [[1, 1]]
        assert singles[0].value in site.inputs


LATE = replace(GRU, loop=True).text().replace("%bias[8]", "%bias[%t]")
"""A step whose second gate has another bias in every step."""


def test_what_a_cell_does_not_compute_is_read_at_places_that_vary() -> None:
    with found(LATE) as (site,):
        varying = {run.value for op in site.outputs for run in site.runs(op) if run.varying}
        assert [list(value.type.shape) for value in varying] == [[24]]
        assert varying <= {*site.inputs}


def test_cells_with_more_weights_than_a_bound_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, number in ((2 * 8 * 8 * 4, 1), (2 * 8 * 8 * 4 - 1, 0)):
        monkeypatch.setattr(cell_finding, "MOST_WEIGHT_BYTES", most)
        with found(gated_unit(rows=1)) as sites:
            assert len(sites) == number


LEFT_ALONE = {
    "rows of a batch": replace(GRU, batch=2, loop=True).text(),
    "a gated unit of two rows": gated_unit(rows=2),
    "weights that are an argument": re.sub(
        r"\n  %of_step = .*: (tensor<\S*>)", "", gated_unit(rows=1)
    ).replace("%x: ", "%of_step: tensor<24x8xf32>, %x: "),
    "one product for all gates": replace(GRU, gates_apart=False).text(),
    "every second column": re.sub(r"(\[1, 8\]) \[1, 1\]( : tensor<1x24xf32>)", r"\1 [1, 2]\2", gated_unit(rows=1)),
    "a slice of a product at a place that varies": (
        gated_unit(rows=1).replace("[0, 8] [1, 8]", "[0, %at] [1, 8]").replace("%x: ", "%at: index, %x: ")
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name: str) -> None:
    with found(LEFT_ALONE[name]) as sites:
        assert sites == []


@pytest.mark.promise
def test_fused_gates_give_the_same_results(tmp_path: Path) -> None:
    names = {f"case{number}": name for number, name in enumerate(NETWORKS)}
    model = write(tmp_path, "".join(NETWORKS[name].text(function) for function, name in names.items()))
    flags = library_for(FusedGates(), model, tmp_path)
    steps = sum(1 if network.loop else network.steps - 1 for network in NETWORKS.values())
    assert rewrites_in(compiled_to(model, flags, "preprocessing"))["fused_gates"] == steps
    vmfb = compile_to_bytes(model, flags)
    for function, name in names.items():
        assert_computed(vmfb, function, NETWORKS[name])


@pytest.mark.promise
@pytest.mark.parametrize("name", ["gru", "lstm"])
def test_a_step_is_one_dispatch(name: str, tmp_path: Path) -> None:
    network = NETWORKS[name]
    model = write(tmp_path, network.text())
    flags = library_for(FusedGates(), model, tmp_path)
    call = compiled_to(model, flags, "flow").partition("util.func public @main")[2]
    dispatches = re.findall(r"flow.dispatch @\S+::@(\S+)\(", call)
    products = 3 if name == "gru" else 4
    assert len(dispatches) == products + network.steps, "of the products of the input, and of every step"
    assert "stream.cmd.copy" not in compiled_to(model, flags, "stream")


MEMORY = replace(LSTM, loop=True).text()
STATE = re.compile(r"(linalg.matmul ins\()%state(, .* outs\()(%\w+)")
OTHERS = {
    "sums of a gate that start with the state": (LATE, STATE.sub(r"\1%state\2%state", LATE, count=1)),
    "a product of the memory": (MEMORY, STATE.sub(r"\1%memory\2\3", MEMORY, count=1)),
    "a bias of another gate": (LATE, "%bias[0]".join(LATE.rsplit("%bias[%t]", 1))),
}


@pytest.mark.promise
@pytest.mark.parametrize("name", OTHERS)
def test_a_library_does_not_fuse_the_gates_of_another_program(name: str, tmp_path: Path) -> None:
    """Several ops of the own program read the value in whose place one of them has another one of the same type."""
    assert_refused(FusedGates(), *OTHERS[name], tmp_path)


@dataclass(frozen=True)
class OfTheNextGate(FusedGates):
    """A mistake: every gate has the weights of the next one."""

    name = "of_the_next_gate"

    def compute(self, site: Cell, *inputs: Any) -> Any:
        weights = [site.inputs.index(product.weights) for product in site.products]
        given = list(inputs)
        for place, other in zip(weights, weights[1:] + weights[:1], strict=True):
            given[place] = inputs[other]
        return super().compute(site, *given)


@pytest.mark.promise
def test_the_weights_of_another_gate_are_found_by_the_checks(tmp_path: Path, here: Target) -> None:
    failed = left_out((FusedGates(), OfTheNextGate()), write(tmp_path, GRU.text()), here)
    assert [*failed] == ["of_the_next_gate"]
    assert "wrong" in failed["of_the_next_gate"]


@pytest.mark.promise
class TestContract(RewriteTests):
    """The contract of all rewrites."""

    def make(self) -> ProgramRewrite:
        return FusedGates()

    def programs(self) -> Mapping[str, str]:
        return {"varying places": LATE, "single factors": gated_unit(1, scaled=True), "heads": gated_unit(1, heads=2)}

    def others(self) -> Mapping[str, str]:
        return {"rows": gated_unit(rows=2)}
