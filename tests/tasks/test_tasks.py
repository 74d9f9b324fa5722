from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import iree_cases as cases
import numpy as np
import pytest

from mlir_sched.compiler import CompilerPool, compile_to_bytes
from mlir_sched.compiler.worker_process import run_isolated
from mlir_sched.errors import UserError
from mlir_sched.payload import OpKind, TensorSpec
from mlir_sched.program.whole_program import profile
from mlir_sched.tasks import extract
from mlir_sched.tasks.task import Task


def compiled(task: Task, flags: tuple[str, ...]) -> bytes:
    with CompilerPool(flags, workers=1) as pool:
        ((_, result),) = pool.compile(task.source, [None])
    assert result.failure is None
    assert result.vmfb is not None
    return result.vmfb


@pytest.mark.promise
def test_a_model_has_its_entry_and_one_task(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, cases.MATMUL)
    (entry,) = model.entries
    assert entry.name == "mm"
    assert entry.inputs == (TensorSpec((64, 32), "f32"), TensorSpec((32, 64), "f32"))
    assert entry.outputs == (TensorSpec((64, 64), "f32"),)
    (task,) = model.tasks
    assert task.weight == 1
    assert task.not_tunable == ""
    assert task.dispatch is not None
    assert [op.kind for op in task.dispatch.ops] == [OpKind.FILL, OpKind.CONTRACTION]


@pytest.mark.promise
def test_a_known_task_is_not_read_again(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(cases.MATMUL)
    (task,) = extract(path, cases.TARGET).tasks
    as_read = replace(task, source="as it was read before", not_tunable="it copies", only_copies=True)
    read_before = replace(as_read, name="another dispatch", weight=7)
    (equal,) = extract(path, cases.TARGET, known=[read_before]).tasks
    assert equal == as_read
    assert extract(path, cases.TARGET, known=[replace(read_before, key="other code")]).tasks == (task,)


@pytest.mark.promise
def test_a_torch_program_has_its_public_entry_only(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, cases.TORCH)
    (entry,) = model.entries
    assert entry.name == "main"
    assert entry.inputs == (TensorSpec((4, 8), "f32"), TensorSpec((8, 16), "f32"))
    assert entry.outputs == (TensorSpec((4, 16), "f32"),)
    assert [task.weight for task in model.tasks] == [1]


RETURNING = """
func.func @main(%a: tensor<4x8xf32>, %state: tensor<4x2xui8>, %unused: tensor<3xf16>, %odd: tensor<2xcomplex<f32>>)
    -> (tensor<4x8xf32>, tensor<4x2xui8>, tensor<4x8xf32>) {
  %r = arith.addf %a, %a : tensor<4x8xf32>
  return %r, %state, %a : tensor<4x8xf32>, tensor<4x2xui8>, tensor<4x8xf32>
}
"""


@pytest.mark.promise
def test_arguments_that_are_only_returned_have_their_types(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(RETURNING)
    (entry,) = extract(tmp_path / "model.mlir", cases.TARGET).entries
    first, state, unused = TensorSpec((4, 8), "f32"), TensorSpec((4, 2), "i8"), TensorSpec((3,), "f16")
    assert entry.inputs == (first, state, unused, TensorSpec((2,), "complex<f32>"))
    assert entry.outputs == (first, state, first)


@pytest.mark.promise
def test_attention_gives_one_task_per_distinct_dispatch(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, cases.ATTENTION)
    assert [task.weight for task in model.tasks] == [1, 1, 1]
    assert [task.dispatch.root.kind for task in model.tasks if task.dispatch] == [
        OpKind.CONTRACTION,
        OpKind.ELEMENTWISE,
        OpKind.CONTRACTION,
    ]


@pytest.mark.promise
@pytest.mark.parametrize(("program", "weight"), [(cases.TWICE, 2), (cases.LOOP, 5)])
def test_equal_dispatches_are_one_task_with_their_calls_as_weight(tmp_path: Path, program: str, weight: int) -> None:
    assert cases.task_of(tmp_path, program).weight == weight


@pytest.mark.promise
def test_the_key_is_the_same_for_the_same_code_under_another_name(tmp_path: Path) -> None:
    first = cases.task_of(tmp_path, cases.MATMUL)
    second = cases.task_of(tmp_path, cases.MATMUL.replace("@mm", "@other"))
    assert first.name != second.name
    assert first.key == second.key
    assert first.source == second.source


@pytest.mark.promise
def test_the_key_depends_on_the_flags(tmp_path: Path) -> None:
    plain = cases.task_of(tmp_path, cases.MATMUL)
    (optimised,) = extract(tmp_path / "model.mlir", cases.TARGET, ("--iree-opt-level=O3",)).tasks
    assert optimised.key != plain.key
    assert optimised.flags == (*cases.FLAGS, "--iree-opt-level=O3")


@pytest.mark.promise
def test_a_task_program_computes_what_the_dispatch_computes(tmp_path: Path) -> None:
    task = cases.task_of(tmp_path, cases.MATMUL)
    rng = np.random.default_rng(0)
    a, b = (rng.random(spec.shape, dtype=np.float32) for spec in task.inputs)
    *_, result = cases.run_program(compiled(task, task.flags), "task", [a, b], [spec.shape for spec in task.outputs])
    np.testing.assert_allclose(result, a @ b, rtol=1e-5)


@pytest.mark.promise
def test_a_dispatch_that_updates_in_place_leaves_the_callers_tensor_alone(tmp_path: Path) -> None:
    task = cases.task_of(tmp_path, cases.ACCUMULATE)
    assert task.not_tunable == ""
    assert [spec.shape for spec in task.inputs] == [(16, 8), (8, 16), (16, 16)]
    rng = np.random.default_rng(1)
    a, b, c = (rng.random(spec.shape, dtype=np.float32) for spec in task.inputs)
    _, _, c_after, result = cases.run_program(compiled(task, task.flags), "task", [a, b, c], [(16, 16)])
    np.testing.assert_array_equal(c_after, c)
    np.testing.assert_allclose(result, a @ b + c, rtol=1e-5)


@pytest.mark.promise
def test_the_tasks_of_a_model_in_a_row_give_its_result(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, cases.ATTENTION)
    rng = np.random.default_rng(2)
    q, k, v = (rng.random(spec.shape, dtype=np.float32) for spec in model.entries[0].inputs)
    with CompilerPool(model.flags, workers=1) as pool:
        compiled_tasks = [next(pool.compile(task.source, [None]))[1].vmfb for task in model.tasks]
    assert all(vmfb is not None for vmfb in compiled_tasks)
    scores, softmax, output = (vmfb or b"" for vmfb in compiled_tasks)
    *_, s = cases.run_program(scores, "task", [q, k], [(2, 32, 32)])
    *_, p = cases.run_program(softmax, "task", [s], [(2, 32, 32)])
    *_, result = cases.run_program(output, "task", [p, v], [(2, 32, 16)])
    e = np.exp(q @ k - (q @ k).max(-1, keepdims=True))
    np.testing.assert_allclose(result, e / e.sum(-1, keepdims=True) @ v, rtol=1e-4)


@pytest.mark.promise
def test_a_copy_is_not_tunable(tmp_path: Path) -> None:
    padded = """
func.func @pad(%x: tensor<4x4xf32>) -> tensor<6x6xf32> {
  %zero = arith.constant 0.0 : f32
  %p = tensor.pad %x low[1, 1] high[1, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } : tensor<4x4xf32> to tensor<6x6xf32>
  return %p : tensor<6x6xf32>
}"""
    assert "copies" in cases.task_of(tmp_path, padded).not_tunable


@pytest.mark.promise
def test_sub_byte_types_are_read(tmp_path: Path) -> None:
    narrow = """
func.func @narrow(%x: tensor<8xi32>) -> tensor<8xi4> {
  %e = tensor.empty() : tensor<8xi4>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
    ins(%x : tensor<8xi32>) outs(%e : tensor<8xi4>) {
  ^bb0(%a: i32, %o: i4):
    %t = arith.trunci %a : i32 to i4
    linalg.yield %t : i4
  } -> tensor<8xi4>
  return %r : tensor<8xi4>
}"""
    task = cases.task_of(tmp_path, narrow)
    assert task.not_tunable == ""
    assert task.outputs == (TensorSpec((8,), "i4"),)


@pytest.mark.promise
def test_a_value_computed_at_run_time_is_not_tunable(tmp_path: Path) -> None:
    scaled = """
func.func @scaled(%x: tensor<8x8xf32>, %n: i32) -> tensor<8x8xf32> {
  %s = arith.sitofp %n : i32 to f32
  %e = tensor.empty() : tensor<8x8xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
    iterator_types = ["parallel", "parallel"]} ins(%x : tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.mulf %a, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x8xf32>
  return %r : tensor<8x8xf32>
}"""
    model = cases.model_of(tmp_path, scaled)
    assert model.entries[0].inputs[1] == TensorSpec((), "i32", by_value=True)
    assert "computed at run time" in model.tasks[0].not_tunable


@pytest.mark.promise
def test_data_tiled_tensors_are_not_tunable(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(cases.BIG_MATMUL)
    model = extract(path, cases.TARGET, ("--iree-opt-data-tiling=true",))
    assert any("data tiling" in task.not_tunable for task in model.tasks)


@pytest.mark.promise
def test_a_program_that_computes_nothing_has_no_task_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }")
    model = extract(path, cases.TARGET)
    assert model.tasks == ()
    assert model.notes == ("the program has no dispatch: IREE compiles it to copies or constants",)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not mlir at all", r"model\.mlir:1:1: .*unknown"),
        ("", "the file is empty"),
        (
            cases.MATMUL.replace("%a: tensor<64x32xf32>", "%a: tensor<?x32xf32>")
            .replace("%a, %b : tensor<64x32xf32>", "%a, %b : tensor<?x32xf32>")
            .replace("64x64", "?x64")
            .replace("tensor.empty()", "tensor.empty(%n)")
            .replace("%zero =", "%c0 = arith.constant 0 : index\n%n = tensor.dim %a, %c0 : tensor<?x32xf32>\n%zero ="),
            r"dynamic shapes are not supported yet: dimension 0 of argument 0 of @mm",
        ),
        (
            "func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {\n"
            '  %0 = "foo.bar"(%x) : (tensor<4xf32>) -> tensor<4xf32>\n'
            "  return %0 : tensor<4xf32>\n}",
            "IREE cannot compile this program",
        ),
        ("func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> { return %y : tensor<4xf32> }", r"model\.mlir:1:\d+"),
    ],
)
def test_a_program_that_cannot_be_tuned_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(text)
    with pytest.raises(UserError, match=message) as error:
        extract(path, cases.TARGET)
    assert len(str(error.value).splitlines()) <= 2


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such file"):
        extract(tmp_path / "absent.mlir", cases.TARGET)


@pytest.mark.promise
def test_an_unknown_flag_is_refused_with_the_compilers_words(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(cases.MATMUL)
    with pytest.raises(UserError, match="Unknown command line argument '--no-such-flag'"):
        extract(path, cases.TARGET, ("--no-such-flag",))


@pytest.mark.promise
def test_extraction_in_a_worker_does_not_load_the_compiler_here() -> None:
    loaded = run_isolated((), "builtins:len", "abc")
    assert loaded == 3


BRANCH = """
func.func @main(%x: tensor<128x64xf32>) -> tensor<128x64xf32> {
  %c0 = arith.constant 0 : index
  %much = arith.constant 1000.0 : f32
  %first = tensor.extract %x[%c0, %c0] : tensor<128x64xf32>
  %large = arith.cmpf ogt, %first, %much : f32
  %empty = tensor.empty() : tensor<128x64xf32>
  %result = scf.if %large -> tensor<128x64xf32> {
    %rows = linalg.softmax dimension(1) ins(%x : tensor<128x64xf32>)
                                        outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %rows : tensor<128x64xf32>
  } else {
    %columns = linalg.softmax dimension(0) ins(%x : tensor<128x64xf32>)
                                           outs(%empty : tensor<128x64xf32>) -> tensor<128x64xf32>
    scf.yield %columns : tensor<128x64xf32>
  }
  %sum = arith.addf %result, %x : tensor<128x64xf32>
  return %sum : tensor<128x64xf32>
}
"""


@pytest.mark.promise
def test_a_dispatch_inside_a_branch_may_not_run_and_a_profile_says_whether_it_did(tmp_path: Path) -> None:
    model = cases.model_of(tmp_path, BRANCH)
    assert [task.may_not_run for task in model.tasks] == [True, True, False]
    rows, columns, total = (task.name for task in model.tasks)
    found = profile(model, compile_to_bytes(model.path, model.flags), cases.TARGET, 1e-3)
    assert found is not None
    assert {*found.calls} == {columns, total}, rows
