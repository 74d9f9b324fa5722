"""Programs with dispatches that are alike: each gets the sequence that was made for it, and no other does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from marking_spaces import MarkOnly, marking
from plans import flagged
from scaled_layers import scaled_layers

from mlir_sched.compiler import CompilerPool, Shown, TunedDispatch, compile_showing
from mlir_sched.compiler.code_digest import plain_type
from mlir_sched.errors import ScriptError
from mlir_sched.library.library import TunedSequence, build_library
from mlir_sched.library.matcher import STORE
from mlir_sched.program.blame import faults_in
from mlir_sched.program.proof import Prover
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model, extract
from mlir_sched.tasks.model import TASK_FLAGS
from mlir_sched.tasks.task import Task
from mlir_sched.trace import Trace
from mlir_sched.transform_scripts.emitter import Emitter
from mlir_sched.transform_scripts.script.building import ScriptEmitter

ID = "affine_map<(i, j) -> (i, j)>"
TURNED = "affine_map<(i, j) -> (j, i)>"


def elementwise(
    name: str, body: str, *, inputs: Sequence[str] = (ID,), constants: Mapping[str, str] | None = None
) -> str:
    """Return a function over 64x48 tensors; its body captures constants and makes ``%r`` of ``%x0``, ``%x1``, ..."""
    type_ = "tensor<64x48xf32>"
    types = [type_ if map_ == ID else "tensor<48x64xf32>" for map_ in inputs]
    arguments = ", ".join(f"%a{i}: {t}" for i, t in enumerate(types))
    captured = "\n".join(f"  %{c} = arith.constant {value} : f32" for c, value in (constants or {}).items())
    names, scalars = (
        ", ".join(f"%a{i}" for i in range(len(types))),
        ", ".join(f"%x{i}: f32" for i in range(len(types))),
    )
    return f"""
func.func @{name}({arguments}) -> {type_} {{
{captured}
  %e = tensor.empty() : {type_}
  %r0 = linalg.generic {{indexing_maps = [{", ".join([*inputs, ID])}], iterator_types = ["parallel", "parallel"]}}
      ins({names} : {", ".join(types)}) outs(%e : {type_}) {{
    ^bb0({scalars}, %o: f32):
      {body}
      linalg.yield %r : f32
  }} -> {type_}
  return %r0 : {type_}
}}"""


def clamp(low: str, high: str) -> dict[str, str]:
    return {"low": low, "high": high}


CLAMP = "%m = arith.maximumf %x0, %low : f32\n      %r = arith.minimumf %m, %high : f32"
GELU = """%t = arith.mulf %x0, %scale : f32
      %w = math.erf %t : f32
      %f = arith.addf %w, %one : f32
      %g = arith.mulf %x0, %half : f32
      %r = arith.mulf %f, %g : f32"""
SQUARE = "%q = arith.mulf %x0, %x0 : f32\n      %r = arith.addf %q, %eps : f32"
MASK = """%i = linalg.index {} : index
      %j = linalg.index {} : index
      %c = arith.cmpi sge, %i, %j : index
      %r = arith.select %c, %x0, %zero : f32"""
DIFFERENCE = "%d = arith.subf {}, {} : f32\n      %r = arith.mulf %d, %c : f32"

ALIKE = {
    "relu and sum": [
        elementwise("relu", "%r = arith.maximumf %x0, %zero : f32", constants={"zero": "0.0"}),
        elementwise("twice", "%r = arith.addf %x0, %x0 : f32"),
    ],
    "epsilons": [
        elementwise("first", SQUARE, constants={"eps": "1.0e-5"}),
        elementwise("second", SQUARE, constants={"eps": "1.0e-6"}),
    ],
    "bounds": [
        elementwise("first", CLAMP, constants=clamp("0.0", "6.0")),
        elementwise("second", CLAMP, constants=clamp("0.0", "1.0")),
    ],
    "gelu": [
        elementwise("exact", GELU, constants={"scale": "0.70710678", "one": "1.0", "half": "0.5"}),
        elementwise("other", GELU, constants={"scale": "0.5", "one": "1.0", "half": "0.70710678"}),
    ],
    "maps": [
        elementwise("straight", "%r = arith.maximumf %x0, %zero : f32", constants={"zero": "0.0"}),
        elementwise("turned", "%r = arith.maximumf %x0, %zero : f32", constants={"zero": "0.0"}, inputs=(TURNED,)),
    ],
    "one more operand": [
        elementwise("one", "%r = arith.maximumf %x0, %zero : f32", constants={"zero": "0.0"}),
        elementwise("two", "%r = arith.maximumf %x1, %zero : f32", constants={"zero": "0.0"}, inputs=(ID, ID)),
    ],
    "masks": [
        elementwise("below", MASK.format(0, 1), constants={"zero": "0.0"}),
        elementwise("above", MASK.format(1, 0), constants={"zero": "0.0"}),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def alike(here: Target, tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Return one program that holds all functions of all cases."""
    folder = tmp_path_factory.mktemp("alike")
    texts = [
        text.replace("func.func @", f"func.func @{name.replace(' ', '_')}_", 1)
        for name, functions in ALIKE.items()
        for text in functions
    ]
    path = folder / "model.mlir"
    path.write_text("".join(texts))
    return extract(path, here)


def sequences_for(tasks: Sequence[Task], target: Target) -> dict[str, TunedSequence]:
    """Return a sequence with a random script per task, with the code that it makes of the task alone."""
    made: dict[str, TunedSequence] = {}
    with CompilerPool(target.flags, workers=1) as pool:
        for number, task in enumerate(tasks):
            assert task.dispatch is not None
            space = DesignSpace(Space.default(target), task.dispatch, target)
            trace = space.sample(np.random.default_rng(number))
            script = space.script(trace, f"s{number}")
            ((_, compiled),) = pool.compile(task.source, [script])
            assert compiled.code, compiled.failure
            made[task.key] = TunedSequence(
                f"s{number}", task.source, space, trace, {}, task.name, script=script, code=compiled.code
            )
    return made


def dispatches(
    model: Model, target: Target, folder: Path, sequences: Sequence[TunedSequence]
) -> tuple[TunedDispatch, ...]:
    """Return the dispatches of a model that a library of sequences is applied to."""
    library = folder / "library.mlir"
    library.write_text(build_library(sequences))
    return compile_showing(model.path, target.flags, library, (Shown.SCRIPTS,)).scripts


@pytest.fixture(scope="module")
def sequences(alike: Model, here: Target) -> dict[str, TunedSequence]:
    return sequences_for(alike.tasks, here)


@pytest.mark.landing
@pytest.mark.parametrize("backwards", [False, True])
def test_each_of_several_dispatches_that_are_alike_gets_its_own_sequence(
    alike: Model, here: Target, sequences: dict[str, TunedSequence], tmp_path: Path, backwards: bool
) -> None:
    ordered = list(sequences.values())[:: -1 if backwards else 1]
    found = dispatches(alike, here, tmp_path, ordered)
    assert {d.name: (d.sequence, d.code) for d in found} == {s.dispatch: (s.symbol, s.code) for s in ordered}
    assert not faults_in(sequences, found, {task.name for task in alike.tasks})


@pytest.mark.promise
def test_a_sequence_reaches_no_dispatch_that_is_like_its_own(
    alike: Model, here: Target, sequences: dict[str, TunedSequence], tmp_path: Path
) -> None:
    """Of every pair only one has a sequence: the other one must not be given it."""
    every_second = list(sequences.values())[::2]
    found = dispatches(alike, here, tmp_path, every_second)
    assert {d.name: d.sequence for d in found} == {s.dispatch: s.symbol for s in every_second}


@pytest.mark.landing
def test_a_sequence_that_its_matcher_cannot_keep_from_another_dispatch_is_kept_from_it_by_name(
    here: Target, tmp_path: Path
) -> None:
    """Of arguments of a body that captures the matcher does not see the positions: x - y is taken for y - x."""
    constants = {"c": "3.0"}
    texts = [
        elementwise("ahead", DIFFERENCE.format("%x0", "%x1"), inputs=(ID, ID), constants=constants),
        elementwise("behind", DIFFERENCE.format("%x1", "%x0"), inputs=(ID, ID), constants=constants),
    ]
    (tmp_path / "model.mlir").write_text("".join(texts))
    model = extract(tmp_path / "model.mlir", here)
    sequences = sequences_for(model.tasks, here)
    (first, own), (second, other) = sequences.items()
    names = {task.name for task in model.tasks}
    found = dispatches(model, here, tmp_path, [own, other])
    assert {d.name: d.sequence for d in found} == {own.dispatch: own.symbol, other.dispatch: own.symbol}
    assert faults_in(sequences, found, names)[first].elsewhere
    alone = dispatches(model, here, tmp_path, [own])
    assert faults_in({first: own}, alone, names)[first].reason.startswith("it is also applied to @behind")
    proven = Prover(tmp_path / "model.mlir", tmp_path).prove(untuned(model), sequences)
    assert not proven.dropped
    assert {key: sequence.only for key, sequence in proven.sequences.items()} == {first: (own.dispatch,), second: ()}
    found = dispatches(model, here, tmp_path, list(proven.sequences.values()))
    assert {d.name: d.sequence for d in found} == {s.dispatch: s.symbol for s in sequences.values()}


TWO_RESULTS = """
func.func @both(%x: tensor<64x48xf32>) -> (tensor<64x48xf32>, tensor<64x48xf32>) {
  %e = tensor.empty() : tensor<64x48xf32>
  %r:2 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
      affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x48xf32>) outs(%e, %e : tensor<64x48xf32>, tensor<64x48xf32>) {
    ^bb0(%a: f32, %o: f32, %p: f32):
      %s = arith.addf %a, %a : f32
      %m = arith.mulf %a, %a : f32
      linalg.yield %s, %m : f32, f32
  } -> (tensor<64x48xf32>, tensor<64x48xf32>)
  return %r#0, %r#1 : tensor<64x48xf32>, tensor<64x48xf32>
}
"""


class Failing(MarkOnly):
    """A design space whose scripts fail on the dispatch they are for."""

    def emit(self, trace: Trace, emitter: Emitter) -> None:
        assert isinstance(emitter, ScriptEmitter)
        emitter.split(emitter.match_ops(["linalg.generic"]), 7)


@pytest.mark.landing
def test_a_script_that_breaks_the_program_is_found_by_name(
    alike: Model, here: Target, sequences: dict[str, TunedSequence], tmp_path: Path
) -> None:
    (first, good), (second, bad), (third, moved), *_ = sequences.items()
    broken = {
        first: good,
        second: replace(bad, space=cast("DesignSpace", Failing()), trace=Trace("failing", ()), script=""),
        third: replace(moved, code="0" * 64),
    }
    proven = Prover(Path(alike.path), tmp_path).prove(untuned(alike), broken)
    assert list(proven.sequences) == [first]
    assert proven.dropped[second].startswith("the program fails with it: ")
    assert proven.dropped[third] == "its code in the program is not the code that was measured"
    assert proven.vmfb


@pytest.mark.promise
def test_a_library_with_another_script_than_the_measured_one_is_refused(sequences: dict[str, TunedSequence]) -> None:
    """As after a change of the transform module that made it."""
    first, second, *_ = sequences.values()
    with pytest.raises(ScriptError, match="not the one that was measured"):
        build_library([replace(first, trace=first.trace, script=second.script.replace(second.symbol, first.symbol))])


@pytest.mark.promise
def test_a_dispatch_with_two_like_stores_is_given_its_sequence_once(here: Target, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(TWO_RESULTS + elementwise("one", "%r = arith.addf %x0, %x0 : f32"))
    model = extract(tmp_path / "model.mlir", here)
    sequences = [marking(f"s{i}", task) for i, task in enumerate(model.tasks)]
    assert sequences[0].source.count(STORE) == 2
    for chosen in (sequences, sequences[:1], sequences[1:]):
        found = dispatches(model, here, tmp_path, chosen)
        assert {d.name: d.sequence for d in found} == {s.dispatch: s.symbol for s in chosen}


def untuned(model: Model) -> BuiltVariant:
    return BuiltVariant(flagged("default"), model, b"", None, model.flags)


@pytest.mark.parametrize(
    ("type_", "plain"),
    [
        ("memref<64x48xf32, strided<[48, 1], offset: ?>>", "memref<64x48xf32>"),
        ("memref<64x48xf32, strided<[96, 1], offset: 16>, #hal.descriptor_type<storage_buffer>>",
         "memref<64x48xf32, strided<[96, 1]>, #hal.descriptor_type<storage_buffer>>"),
        ("memref<2xf32, affine_map<(d0)[s0] -> (d0 + s0)>>", "memref<2xf32>"),
        ("memref<4x8xf32, affine_map<(d0, d1)[s0] -> (d0 * 16 + d1 + s0)>>", "memref<4x8xf32, strided<[16, 1]>>"),
        ("memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>", "memref<4xf32, affine_map<(d0) -> (d0 mod 2)>>"),
        ("memref<?x8xf32, strided<[8, 1], offset: ?>>", "memref<?x8xf32>"),
        ("memref<36x?xf32, strided<[3136, 1], offset: ?>>", "memref<36x?xf32, strided<[3136, 1]>>"),
        ("memref<36x?xf32, affine_map<(d0, d1)[s0] -> (d0 * 3136 + d1 + s0)>>",
         "memref<36x?xf32, strided<[3136, 1]>>"),
        ("vector<16xf32>", "vector<16xf32>"),
    ],
)  # fmt: skip
def test_where_a_buffer_begins_is_no_code(type_: str, plain: str) -> None:
    assert plain_type(type_) == plain


@pytest.mark.landing
def test_layers_that_differ_in_a_number_all_have_the_sequence_of_their_task(here: Target, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(scaled_layers((0.5, 0.25, 0.75)))
    target = replace(here, flags=(*here.flags, *TASK_FLAGS))
    model = extract(tmp_path / "model.mlir", target)
    sequences = sequences_for(model.tasks, target)
    ((key, own),) = sequences.items()
    assert not Prover(tmp_path / "model.mlir", tmp_path).prove(untuned(model), sequences).dropped
    found = dispatches(model, target, tmp_path, [own])
    assert [(d.sequence, d.code) for d in found] == [(own.symbol, own.code)]
    assert not faults_in({key: own}, found, {own.dispatch})
