"""Models as frameworks export them: torch dialect, weights as resources or in files, text or bytecode."""

from __future__ import annotations

import subprocess
from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest
from folders import SUPPORT, TESTS

from mlir_sched.compiler import CompilerPool
from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.errors import UserError
from mlir_sched.outcome import Verdict
from mlir_sched.payload import TensorSpec
from mlir_sched.pipeline import tune
from mlir_sched.replaying.replay import replay
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tuned_folder.result import TuneResult
from mlir_sched.tuning.options import TuneOptions

pytestmark = pytest.mark.promise

EXPORTED = TESTS / "exported"
CONVOLUTIONAL, TRANSFORMER = EXPORTED / "convolutional.mlir", EXPORTED / "transformer.mlir"
COPIES = "it only copies (IREE turns it into a copy of its own)"
PARAMETERS = """
util.global private @weights = #flow.parameter.named<"model"::"weights"> : tensor<16x32xf32>
func.func public @project(%tokens: tensor<4xi32>, %scale: f32) -> (tensor<4x32xf32>, i32) {
  %w = util.global.load @weights : tensor<16x32xf32>
  %count = arith.constant 7 : i32
  %e = tensor.empty() : tensor<4x32xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%tokens : tensor<4xi32>) outs(%e : tensor<4x32xf32>) {
  ^bb0(%token: i32, %o: f32):
    %row = arith.index_cast %token : i32 to index
    %j = linalg.index 1 : index
    %v = tensor.extract %w[%row, %j] : tensor<16x32xf32>
    linalg.yield %v : f32
  } -> tensor<4x32xf32>
  return %r, %count : tensor<4x32xf32>, i32
}
func.func public @product(%x: tensor<64x16xf32>) -> tensor<64x32xf32> {
  %w = util.global.load @weights : tensor<16x32xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %r = linalg.matmul ins(%x, %w : tensor<64x16xf32>, tensor<16x32xf32>)
    outs(%f : tensor<64x32xf32>) -> tensor<64x32xf32>
  return %r : tensor<64x32xf32>
}
"""


STABLEHLO = """
func.func @main(%a: tensor<16x32xf32>, %b: tensor<32x8xf32>) -> tensor<16x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<16x8xf32>
  %1 = stablehlo.maximum %0, %zero : tensor<16x8xf32>
  return %1 : tensor<16x8xf32>
}
"""
TOSA = """
func.func @main(%a: tensor<1x16x32xf32>, %b: tensor<1x32x8xf32>) -> tensor<1x16x8xf32> {
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %a, %b, %z, %z
    : (tensor<1x16x32xf32>, tensor<1x32x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x16x8xf32>
  %1 = tosa.tanh %0 : (tensor<1x16x8xf32>) -> tensor<1x16x8xf32>
  return %1 : tensor<1x16x8xf32>
}
"""


@pytest.fixture(scope="module")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bytecode") / "transformer.mlirbc"
    subprocess.run([iree_compile_path().with_name("iree-opt"), "--emit-bytecode", TRANSFORMER, "-o", path], check=True)
    return path


@pytest.fixture(scope="module")
def transformer(bytecode: Path) -> Model:
    return extract(bytecode, cases.TARGET, TASK_FLAGS)


@pytest.fixture(scope="module")
def with_parameters(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    import iree.runtime as rt

    folder = tmp_path_factory.mktemp("parameters")
    model, weights = folder / "model.mlir", folder / "weights.irpa"
    model.write_text(PARAMETERS)
    index = rt.ParameterIndex()
    rt.parameter_index_add_numpy_ndarray(index, "weights", np.arange(16 * 32, dtype=np.float32).reshape(16, 32) / 512)
    index.create_archive_file(str(weights))
    return model, f"model={weights}"


def reasons(model: Model) -> dict[str, str]:
    return {task.name.partition("dispatch_")[2]: task.not_tunable for task in model.tasks if task.not_tunable}


def test_every_dispatch_of_an_exported_network_is_a_task_but_for_its_padding() -> None:
    model = extract(CONVOLUTIONAL, cases.TARGET, TASK_FLAGS)
    assert reasons(model) == {"0_slow_memcpy": COPIES}
    assert [task.only_copies for task in model.tasks] == [True, *(False,) * 6]
    assert model.internal_errors == ()


@pytest.mark.landing
def test_weights_inside_of_a_dispatch_come_along_with_its_program() -> None:
    model = extract(CONVOLUTIONAL, cases.TARGET)
    holding = [task for task in model.tasks if "dense_resource<" in task.source]
    assert holding
    with CompilerPool(model.flags, workers=1) as pool:
        for task in holding:
            ((_, result),) = pool.compile(task.source, [None])
            assert result.failure is None


@pytest.mark.landing
def test_without_constants_inside_equal_dispatches_are_one_task(transformer: Model) -> None:
    inlined = extract(TRANSFORMER, cases.TARGET)
    assert not any("dense_resource<" in task.source for task in transformer.tasks)
    assert len(transformer.tasks) < len(inlined.tasks)
    assert sum(task.weight for task in transformer.tasks) == sum(task.weight for task in inlined.tasks)


@pytest.mark.landing
def test_bytecode_gives_the_tasks_of_the_text(transformer: Model) -> None:
    text = extract(TRANSFORMER, cases.TARGET, TASK_FLAGS)
    assert [task.key for task in transformer.tasks] == [task.key for task in text.tasks]


def test_tokens_stay_inside_of_the_table_they_read_and_masks_are_free(transformer: Model) -> None:
    (entry,) = transformer.entries
    assert entry.inputs == (TensorSpec((1, 4), "i64"), TensorSpec((1, 4), "i1"))
    assert entry.integer_ranges == ((0, 6), None)
    assert [spec.shape for spec in entry.outputs] == [(1, 4, 8), (1, 8)]


@pytest.mark.landing
def test_a_crash_or_a_mistake_costs_one_dispatch_and_not_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setattr("mlir_sched.tasks.model._JOB", "broken_extraction:extract_model")
    model = extract(TRANSFORMER, cases.TARGET, TASK_FLAGS)
    found = reasons(model)
    assert found["6_softmax_2x4x4xf32_dispatch_tensor_store"].startswith("IREE crashes on it: ")
    assert found["13_reduction_8x4_f32"] == "internal error: KeyError: 'a mistake'"
    assert len(found) == 2
    assert "Traceback" in model.internal_errors[0]


@pytest.mark.sweep("landing")
@pytest.mark.parametrize("model", [CONVOLUTIONAL, TRANSFORMER])
@pytest.mark.parametrize("job", ["refused_together", "crashing_together"])
def test_dispatches_compiled_together_are_the_same_as_alone(
    job: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = extract(model, cases.TARGET, TASK_FLAGS)
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setattr("mlir_sched.tasks.model._JOB", f"broken_extraction:{job}")
    assert extract(model, cases.TARGET, TASK_FLAGS) == together
    assert all(task.source for task in together.tasks if task.dispatch is not None)


def test_a_program_whose_weights_are_missing_is_refused_with_the_option_to_add(
    with_parameters: tuple[Path, str],
) -> None:
    model, _ = with_parameters
    with pytest.raises(UserError, match=r"add --parameters model=FILE\.irpa"):
        extract(model, cases.TARGET, TASK_FLAGS)


@pytest.mark.usefixtures("short_sessions")
def test_several_functions_with_weights_in_a_file_and_scalars_are_checked_and_timed_together(
    with_parameters: tuple[Path, str], tmp_path: Path
) -> None:
    model, weights = with_parameters
    result = tune(
        model, tmp_path / "tuned", options=TuneOptions(trials=2, round_size=2, threads=1), parameters=[weights]
    )
    assert result.program.verdict is Verdict.RIGHT
    assert result.parameters == (weights,)
    assert all(dispatch.note or dispatch.tuned for dispatch in result.dispatches), (
        "every row says why it stays as it is"
    )


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_functions_with_weights_in_a_file_are_tuned_without_a_search(
    with_parameters: tuple[Path, str], tmp_path: Path
) -> None:
    model, weights = with_parameters
    result = tune(model, tmp_path / "tuned", options=TuneOptions(trials=0, threads=1), parameters=[weights])
    assert_tuned_without_a_search(result)
    assert result.parameters == (weights,)
    replayed = replay(tmp_path / "tuned", model, parameters=[weights])
    assert replayed.problems == ()


@pytest.mark.nightly
@pytest.mark.usefixtures("short_sessions")
@pytest.mark.parametrize("model", [CONVOLUTIONAL, TRANSFORMER], ids=["convolutional", "transformer"])
def test_an_exported_model_is_tuned_without_a_search(model: Path, tmp_path: Path) -> None:
    assert_tuned_without_a_search(tune(model, tmp_path / "tuned", options=TuneOptions(trials=0, threads=1)))


def assert_tuned_without_a_search(result: TuneResult) -> None:
    """Require that candidates of every dispatch that has a sketch were measured, and that the program is right."""
    assert result.one_shot is not None
    assert result.one_shot.dispatches > 0
    assert result.trials == sum(result.one_shot.candidates.values()) > 0
    assert result.program.verdict is Verdict.RIGHT


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_an_exported_model_in_bytecode_is_tuned_and_its_two_results_are_checked(bytecode: Path, tmp_path: Path) -> None:
    result = tune(bytecode, tmp_path / "tuned", options=TuneOptions(trials=2, round_size=2, threads=1))
    assert result.program.verdict is Verdict.RIGHT
    assert result.trials == 2
    assert result.tunable_share is not None
    assert result.tunable_share > 0.5
    assert sum(dispatch.share or 0.0 for dispatch in result.dispatches) == pytest.approx(1.0)
    assert all(len(dispatch.note) <= 120 for dispatch in result.dispatches)


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_an_exported_model_in_text_with_its_weights_as_resources_is_tuned(tmp_path: Path) -> None:
    result = tune(CONVOLUTIONAL, tmp_path / "tuned", options=TuneOptions(trials=2, round_size=2, threads=1))
    assert (result.program.verdict, result.trials) == (Verdict.RIGHT, 2)
    assert result.tunable_share is not None
    assert result.tunable_share > 0.5


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_the_function_whose_numbers_cannot_be_verified_is_named_and_the_other_is_tuned(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(STABLEHLO + STABLEHLO.replace("@main", "@zero").replace("return %1", "return %zero"))
    result = tune(path, tmp_path / "tuned", options=TuneOptions(trials=1, threads=1))
    assert list(result.not_run) == ["zero"]
    assert result.not_run["zero"].startswith("its numbers cannot be verified: ")
    assert result.program.verdict is Verdict.RIGHT
    replayed = replay(tmp_path / "tuned", path)
    assert replayed.program is not None
    assert replayed.notes == (f"@zero is neither run nor timed: {result.not_run['zero']}",)


@pytest.mark.parametrize("program", [STABLEHLO, TOSA])
def test_other_input_dialects_are_taken_as_they_are(program: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(program)
    (task,) = extract(path, cases.TARGET, TASK_FLAGS).tasks
    assert task.not_tunable == ""


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("%x", (0, 15)), ("%n", None)],
)
def test_only_integers_that_are_indices_are_limited(tmp_path: Path, arguments: str, expected: object) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(INDICES)
    (entry,) = extract(path, cases.TARGET, TASK_FLAGS).entries
    assert entry.integer_ranges[["%x", "%n"].index(arguments)] == expected


def test_tasks_know_the_integers_that_their_inputs_may_hold(tmp_path: Path) -> None:
    """Amounts of shifts stay below the bits that are shifted, divisors above 0; other bytes take all values."""
    body = "%a: i8, %b: i8, %c: i8, %o: i8"
    path = tmp_path / "model.mlir"
    path.write_text(f"""
#m = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xi8>, %by: tensor<64xi8>, %over: tensor<64xi8>) -> tensor<64xi8> {{
  %e = tensor.empty() : tensor<64xi8>
  %r = linalg.generic {{indexing_maps = [#m, #m, #m, #m], iterator_types = ["parallel"]}}
    ins(%x, %by, %over : tensor<64xi8>, tensor<64xi8>, tensor<64xi8>) outs(%e : tensor<64xi8>) {{
  ^bb0({body}):
    %w = arith.extsi %a : i8 to i32
    %n = arith.extsi %b : i8 to i32
    %s = arith.shrsi %w, %n : i32
    %t = arith.trunci %s : i32 to i8
    %d = arith.divsi %t, %c : i8
    linalg.yield %d : i8
  }} -> tensor<64xi8>
  return %r : tensor<64xi8>
}}
""")
    model = extract(path, cases.TARGET, TASK_FLAGS)
    assert model.tasks[0].integer_ranges == model.entries[0].integer_ranges == (None, (0, 31), (1, 127))


INDICES = """
func.func public @main(%x: tensor<4xi32>, %n: tensor<4xi32>, %table: tensor<16xf32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %e = tensor.empty() : tensor<4xf32>
  %i = tensor.empty() : tensor<4xi32>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%x : tensor<4xi32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: i32, %o: f32):
    %at = arith.index_cast %a : i32 to index
    %v = tensor.extract %table[%at] : tensor<16xf32>
    linalg.yield %v : f32
  } -> tensor<4xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
    iterator_types = ["parallel"]} ins(%n : tensor<4xi32>) outs(%i : tensor<4xi32>) {
  ^bb0(%a: i32, %o: i32):
    %v = arith.muli %a, %a : i32
    linalg.yield %v : i32
  } -> tensor<4xi32>
  return %r, %s : tensor<4xf32>, tensor<4xi32>
}
"""
