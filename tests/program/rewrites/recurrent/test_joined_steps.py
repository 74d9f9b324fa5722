"""Products of the steps of recurrent networks: one product of the whole sequence, with the same results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from iree.compiler import ir
from recurrent_networks import Recurrent, assert_computed
from rewriting import compiled_to, left_out, library_for, run, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.linalg_ops import slice_of
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.rewrites.recurrent import joined_steps
from mlir_sched.program.rewrites.recurrent.finding import step_products
from mlir_sched.program.rewrites.recurrent.joined_steps import JoinedSteps
from mlir_sched.program.rewrites.recurrent.step_product import StepProduct
from mlir_sched.program.rewrites.walked_program import WalkedProgram
from mlir_sched.targets.target import Target
from mlir_sched.transform_scripts.script.form import script_context

GRU, LSTM = Recurrent("gru"), Recurrent("lstm")
NETWORKS = {
    "gru": GRU,
    "lstm": LSTM,
    "steps first": replace(LSTM, time_first=True),
    "gru in a loop": replace(GRU, loop=True),
    "lstm in a loop": replace(LSTM, loop=True),
    "gates apart in a loop": replace(LSTM, loop=True, gates_apart=True),
    "steps first in a loop": replace(GRU, loop=True, time_first=True),
}


@contextmanager
def found(text: str) -> Iterator[list[StepProduct]]:
    """Give the products of steps in a program."""
    with script_context(), ir.Location.unknown():
        program = WalkedProgram(ir.Module.parse(text))
        yield step_products(program)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_products_of_a_layer_are_one(name: str) -> None:
    network = NETWORKS[name]
    with found(network.text()) as sites:
        products = 4 if network.gates_apart else 1
        assert len(sites) == products * (1 if network.loop else network.steps)
        assert len({site.whole for site in sites}) == products
        assert [len(site.steps) for site in sites] == [1] * len(sites), "the bias is added to all rows at once"


LEFT_ALONE = {
    "products that depend on the state": replace(GRU, fed_back=True).text(),
    "products that depend on the state of a loop": replace(GRU, fed_back=True, loop=True).text(),
    "weights of every other step": replace(GRU, alternating=True).text(),
    "one step": replace(GRU, steps=1).text(),
    "results larger than the weights": replace(GRU, batch=64).text(),
    "a loop that runs as often as the caller says": replace(GRU, loop=True)
    .text()
    .replace("%x: ", "%end: index, %x: ")
    .replace("  %end = arith.constant 4 : index\n", ""),
    "weights that are an argument": re.sub(
        r"\n  %of_step = .*: (tensor<\S*>)", "", GRU.text()
    ).replace("%x: ", "%of_step: tensor<24x8xf32>, %x: "),
    "half of the sequence is not read": replace(GRU, batch=1).text().replace("1x4x8xf32", "1x8x8xf32"),
}  # fmt: skip


@pytest.mark.parametrize("name", LEFT_ALONE)
def test_what_is_left_alone(name: str) -> None:
    with found(LEFT_ALONE[name]) as sites:
        assert sites == []


def test_some_rows_may_not_be_read() -> None:
    with found(replace(GRU, batch=1).text().replace("1x4x8xf32", "1x7x8xf32")) as sites:
        assert len(sites) == GRU.steps


def test_kinds_that_are_not_worth_it_everywhere_are_left_alone() -> None:
    """No matcher sees whose weights a product reads."""
    with found(GRU.text() + replace(GRU, alternating=True).text("other")) as sites:
        assert sites == []


@pytest.mark.promise
def test_whole_sequences_give_the_same_results(tmp_path: Path) -> None:
    names = {f"case{number}": name for number, name in enumerate(NETWORKS)}
    model = write(tmp_path, "".join(NETWORKS[name].text(function) for function, name in names.items()))
    flags = library_for(JoinedSteps(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"joined_steps": len(NETWORKS) + 3}, "four gates"
    vmfb = compile_to_bytes(model, flags)
    for function, name in names.items():
        assert_computed(vmfb, function, NETWORKS[name])


@pytest.mark.promise
@pytest.mark.parametrize("name", ["gru", "gru in a loop"])
def test_no_step_multiplies_its_input(name: str, tmp_path: Path) -> None:
    """All rows are multiplied once, in front of the first step."""
    model = write(tmp_path, NETWORKS[name].text())
    text = compiled_to(model, library_for(JoinedSteps(), model, tmp_path), "preprocessing")
    call = text.partition("util.func public @main")[2]
    rows = [int(row) for row in re.findall(r"linalg.matmul.*-> tensor<(\d+)x", call)]
    assert rows == [8, *[2] * (len(rows) - 1)]
    assert len(rows) == (2 if NETWORKS[name].loop else 5)
    assert "scf.for" not in call.partition("tensor<8x24xf32>")[0]


@pytest.mark.promise
@pytest.mark.parametrize("network", [GRU, replace(GRU, batch=1)])
def test_what_reads_the_rows_of_a_step_is_the_same_dispatch_for_all_steps(network: Recurrent, tmp_path: Path) -> None:
    """The state before the first step is a constant; no rows are copied."""
    model = write(tmp_path, network.text())
    flags = library_for(JoinedSteps(), model, tmp_path)
    call = compiled_to(model, flags, "flow").partition("util.func public @main")[2]
    calls = Counter(re.findall(r"flow.dispatch @\S+::@(\S+)\(", call))
    assert [count for name, count in calls.items() if "elementwise" in name] == [1, network.steps - 1]
    assert "stream.cmd.copy" not in compiled_to(model, flags, "stream")


@pytest.mark.promise
def test_other_rewrites_see_the_product_of_the_whole_sequence(tmp_path: Path) -> None:
    network = replace(GRU, batch=1, features=32, steps=8)
    model = write(tmp_path, network.text())
    flags = library_for(Plan((PackedWeights(),)), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"joined_steps": 1, "packed_weights": 1}
    x = network.values("x")
    np.testing.assert_allclose(run(compile_to_bytes(model, flags), [x]), network.evaluated(x), rtol=1e-5, atol=1e-6)


@dataclass(frozen=True)
class OfTheNextStep(JoinedSteps):
    """A mistake: every step but the last one takes the rows of the next one."""

    name = "of_the_next_step"

    def compute(self, site: StepProduct, *inputs: Any) -> Any:
        def off_by_one(source: Any, offsets: Any, sizes: Any) -> Any:
            most = source.type.shape[0] - sizes[0]
            return slice_of(source, [min(offsets[0] + 1, most), *offsets[1:]], sizes)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(joined_steps, "slice_of", off_by_one)
            return super().compute(site, *inputs)


@pytest.mark.promise
def test_the_rows_of_another_step_are_found_by_the_checks(
    tmp_path: Path, here: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "FIRST", ())
    failed = left_out((JoinedSteps(), OfTheNextStep()), write(tmp_path, GRU.text()), here)
    assert [*failed] == ["of_the_next_step"]
    assert "wrong" in failed["of_the_next_step"]
