"""The transform library through the public route: every sequence meets its own dispatch, and no other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from applied_sequences import applied_sequences
from contraction_payloads import matmul, matmul_bias_gelu, matvec
from convolution_payloads import CONVOLUTIONS
from payload_text import Payload
from payloads import PAYLOADS, row_sum, softmax, transpose

from mlir_sched.compiler import ModelCompileError, compile_model
from mlir_sched.compiler.flags import library_flags, read_response_file, write_response_file
from mlir_sched.compiler.passes import run_passes
from mlir_sched.compiler.worker import preconfiguration
from mlir_sched.library.library import TunedSequence, build_library, provenance_of
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.targets.target import Target
from mlir_sched.tasks.task import Task
from mlir_sched.transform_scripts.script import reading

pytestmark = pytest.mark.promise

TaskFor = Callable[[str | Payload], Task]
SpaceFor = Callable[[str | Payload], DesignSpace]


@pytest.fixture
def sequence_for(task_for: TaskFor, space_for: SpaceFor) -> Callable[[Payload, str], TunedSequence]:
    """Return a function that makes a sequence of the first sketch of a payload."""

    def make(payload: Payload, symbol: str) -> TunedSequence:
        space = space_for(payload)
        trace = space.sample(np.random.default_rng(0), space.sketches[0])
        return TunedSequence(symbol, task_for(payload).source, space, trace, {"seed": "0"})

    return make


def applied(folder: Path, here: Target, library: str, payload: Payload) -> dict[str, int]:
    """Return how often each sequence of a library is applied in a program."""
    (folder / "library.mlir").write_text(library)
    (folder / "model.mlir").write_text(payload.text)
    flags = (*here.flags, *payload.flags)
    return applied_sequences(folder / "model.mlir", flags, folder / "library.mlir")


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("name", PAYLOADS)
def test_matcher_finds_its_own_dispatch(
    tmp_path: Path, here: Target, sequence_for: Callable[[Payload, str], TunedSequence], name: str
) -> None:
    library = build_library([sequence_for(PAYLOADS[name], "mine")])
    assert applied(tmp_path, here, library, PAYLOADS[name]) == {"mine": 1}


def test_matcher_sees_what_an_image_is_padded_with(
    tmp_path: Path, here: Target, sequence_for: Callable[[Payload, str], TunedSequence]
) -> None:
    """The value is a constant that the padding op captures."""
    zeros = CONVOLUTIONS["2d_padded"]
    ones = Payload(zeros.text.replace("%pad = arith.constant 0.0", "%pad = arith.constant 1.0"), zeros.flags)
    assert ones != zeros
    library = build_library([sequence_for(zeros, "mine")])
    assert applied(tmp_path, here, library, zeros) == {"mine": 1}
    assert applied(tmp_path, here, library, ones) == {}


def matmul_from(start: float) -> Payload:
    """Return start + A B: the start is an operand of the fill, not captured by a body."""
    return Payload(matmul(64, 48, 80).text.replace("arith.constant 0.0", f"arith.constant {start}"))


@pytest.mark.parametrize(
    ("tuned", "other"),
    [
        (matmul(64, 48, 80), matmul(64, 48, 96)),
        (matmul(64, 48, 80), matmul(64, 48, 80, "f16")),
        (matmul(64, 48, 80), matmul_bias_gelu(64, 48, 80)),
        (matmul_bias_gelu(64, 48, 80), matmul(64, 48, 80)),
        (row_sum(96, 512), row_sum(512, 96)),
        (softmax(4, 32, 128), softmax(4, 128, 32)),
        (matvec(64, 48), row_sum(64, 48)),
        (matmul_from(0.0), matmul_from(1.0)),
    ],
    ids=["extent", "type", "one more op", "one op less", "rows for columns", "other rows", "op", "constant"],
)
def test_matcher_leaves_other_dispatches(
    tmp_path: Path, here: Target, sequence_for: Callable[[Payload, str], TunedSequence], tuned: Payload, other: Payload
) -> None:
    library = build_library([sequence_for(tuned, "mine")])
    assert applied(tmp_path, here, library, other) == {}


def together(*payloads: Payload) -> Payload:
    """Return a program with one function per payload."""
    texts = [payload.text.replace("@main", f"@main_{i}") for i, payload in enumerate(payloads)]
    return Payload("".join(texts))


def test_each_sequence_is_applied_once(
    tmp_path: Path, here: Target, sequence_for: Callable[[Payload, str], TunedSequence]
) -> None:
    parts = [matmul(64, 48, 80), softmax(4, 32, 128), transpose(192, 160), matmul(48, 64, 80)]
    library = build_library([sequence_for(part, f"part_{i}") for i, part in enumerate(parts)])
    assert applied(tmp_path, here, library, together(*parts)) == {f"part_{i}": 1 for i in range(4)}
    assert provenance_of(library)["part_2"]["seed"] == "0"
    assert list(provenance_of(library)) == [f"part_{i}" for i in range(4)]


def test_a_library_is_put_together_once_and_read_once_whatever_it_states_and_holds(
    sequence_for: Callable[[Payload, str], TunedSequence], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = [sequence_for(part, f"part_{i}") for i, part in enumerate([matmul(64, 48, 80), softmax(4, 32, 128)])]
    sequences = [replace(each, script=each.space.script(each.trace, each.symbol)) for each in made]
    read, passes, named = list[str](), list[str](), list[str]()
    monkeypatch.setattr(reading, "parse_module", noting(read, reading.parse_module))
    monkeypatch.setattr(preconfiguration, "run_passes", noting(passes, run_passes))
    library = build_library(sequences, emission=noting(named, lambda _: "abc"))
    assert read.count(library) == 1
    assert len(passes) == 1
    assert named == [build_library(sequences)]
    assert library.replace('mlir_sched.emission = "abc", ', "", 1) == named[0] != library


def noting(given: list[str], function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that notes the first text that it is given."""

    def noted(text: str, *others: Any) -> Any:
        given.append(text)
        return function(text, *others)

    return noted


@pytest.mark.parametrize("name", ["tuned", "tuned (new) folder"])
def test_library_works_from_any_folder(
    tmp_path: Path,
    here: Target,
    sequence_for: Callable[[Payload, str], TunedSequence],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    payload = matmul(64, 48, 80)
    folder = tmp_path / name
    folder.mkdir()
    (folder / "library.mlir").write_text(build_library([sequence_for(payload, "mine")]))
    (tmp_path / "model.mlir").write_text(payload.text)
    flags = (*here.flags, *library_flags(folder / "library.mlir"))
    (folder / "flags.txt").write_text(write_response_file(flags))
    assert read_response_file((folder / "flags.txt").read_text()) == flags
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    compile_model("../model.mlir", (f"@../{name}/flags.txt",), None, Path("model.vmfb"))
    assert applied_sequences("../model.mlir", (f"@../{name}/flags.txt",), None) == {"mine": 1}
    assert Path("model.vmfb").stat().st_size > 0


def test_the_compiler_loads_a_library_before_it_works_on_several_dispatches_at_once(
    tmp_path: Path, here: Target
) -> None:
    """A model without any dispatch never asks for a library, so only the early load can find that it is missing."""
    (tmp_path / "model.mlir").write_text(
        "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }"
    )
    with pytest.raises(ModelCompileError, match="failed to open transform file"):
        compile_model(tmp_path / "model.mlir", here.flags, tmp_path / "missing.mlir", tmp_path / "model.vmfb")
