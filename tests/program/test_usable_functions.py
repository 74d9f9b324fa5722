"""Programs whose results say nothing are verified by results of their dispatches, or refused with the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import iree_cases as cases
import pytest
from rewriting import write
from rule_ops import dispatch, epilogue, matmul

from mlir_sched.attributes import APPLIED
from mlir_sched.compiler import Shown, compile_showing, compile_to_bytes
from mlir_sched.errors import UserError
from mlir_sched.outcome import Verdict
from mlir_sched.program.checking import inside, usable_functions
from mlir_sched.program.checking.inside import OTHER_DISPATCHES, WIDE, hidden_types
from mlir_sched.program.checking.usable_functions import with_usable_functions
from mlir_sched.program.whole_program import CompiledModel, measure_programs
from mlir_sched.runner import RacingOptions, Runner, RunnerOptions, RunResult, UnverifiableError
from mlir_sched.runner.program import Program
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS, Model, extract
from mlir_sched.tasks.shown import Recipe
from mlir_sched.text import numbers

QUICK = RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))
FLAGS = (*cases.FLAGS, *TASK_FLAGS)
ROW, ROWS, COLUMN = "affine_map<(i, j) -> (i)>", "affine_map<(i, j) -> (i, j)>", "affine_map<(i) -> (i)>"
GREATER, LESS = 2, 4
"""Predicates of ``arith.cmpf``."""


def network(result: str, ending: str) -> str:
    """Return a program of two products with relu between, and an ending that says nothing of the inputs."""
    return f"""
func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>, %v: tensor<16x16xf32>) -> tensor<8x{result}> {{
  %zero = arith.constant 0.0 : f32
  %many = arith.constant 1.0e+30 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = linalg.matmul ins(%x, %w : tensor<8x32xf32>, tensor<32x16xf32>) outs(%f : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  %relu = linalg.map ins(%p : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) (%a: f32, %o: f32) {{
    %above = arith.cmpf ogt, %a, %zero : f32
    %r = arith.select %above, %a, %zero : f32
    linalg.yield %r : f32
  }}
  %q = linalg.matmul ins(%relu, %v : tensor<8x16xf32>, tensor<16x16xf32>) outs(%f : tensor<8x16xf32>)
    -> tensor<8x16xf32>
  %e1 = tensor.empty() : tensor<8x{result}>
  {ending}
}}
"""


def sums(last: str) -> str:
    """Return an ending: the sum of each row, and a last step that makes %r of %a."""
    return f"""
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {{indexing_maps = [{ROWS}, {ROW}], iterator_types = ["parallel", "reduction"]}}
    ins(%q : tensor<8x16xf32>) outs(%f1 : tensor<8xf32>) {{
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    linalg.yield %c : f32
  }} -> tensor<8xf32>
  %z = linalg.map ins(%s : tensor<8xf32>) outs(%e1 : tensor<8xf32>) (%a: f32, %o: f32) {{
    {last}
    linalg.yield %r : f32
  }}
  return %z : tensor<8xf32>"""


CLASS = f"""
  %first = arith.constant 0 : i32
  %f1 = linalg.fill ins(%first : i32) outs(%e1 : tensor<8xi32>) -> tensor<8xi32>
  %f2 = tensor.empty() : tensor<8xf32>
  %lowest = arith.constant -1.0e+30 : f32
  %f3 = linalg.fill ins(%lowest : f32) outs(%f2 : tensor<8xf32>) -> tensor<8xf32>
  %z:2 = linalg.generic {{indexing_maps = [{ROWS}, {ROW}, {ROW}], iterator_types = ["parallel", "reduction"]}}
    ins(%q : tensor<8x16xf32>) outs(%f3, %f1 : tensor<8xf32>, tensor<8xi32>) {{
  ^bb0(%a: f32, %m: f32, %i: i32):
    %j = linalg.index 1 : index
    %n = arith.index_cast %j : index to i32
    %three = arith.constant 3 : i32
    %is = arith.cmpi eq, %n, %three : i32
    %bias = arith.select %is, %many, %zero : f32
    %logit = arith.addf %a, %bias : f32
    %more = arith.maximumf %logit, %m : f32
    %better = arith.cmpf ogt, %logit, %m : f32
    %c = arith.select %better, %n, %i : i32
    linalg.yield %more, %c : f32, i32
  }} -> (tensor<8xf32>, tensor<8xi32>)
  return %z#1 : tensor<8xi32>"""
CLAMPED = network("f32", sums("%r = arith.maximumf %a, %many : f32"))
SILENT = {
    "one class": network("i32", CLASS),
    "times zero": network("f32", sums("%r = arith.mulf %a, %zero : f32")),
}
NOTHING = """
func.func @main(%x: tensor<8x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %z = linalg.map ins(%x : tensor<8x32xf32>) outs(%e : tensor<8x32xf32>) (%a: f32, %o: f32) {
    %r = arith.mulf %a, %zero : f32
    linalg.yield %r : f32
  }
  return %z : tensor<8x32xf32>
}
"""


def script(predicate: int) -> str:
    """Return a library whose script gives the comparison behind a product a predicate."""
    return f"""
module attributes {{transform.with_named_sequence}} {{
  transform.named_sequence @__transform_main(%program: !transform.any_op {{transform.readonly}}) {{
    transform.yield
  }}
  transform.named_sequence @__kernel_config(%function: !transform.any_op {{transform.readonly}}) {{
    %products = transform.structured.match ops{{["linalg.matmul"]}} in %function : (!transform.any_op)
      -> !transform.any_op
    transform.foreach %products : !transform.any_op {{
    ^bb0(%product: !transform.any_op):
      %name = transform.param.constant "sequence" -> !transform.any_param
      transform.annotate %function "{APPLIED}" = %name : !transform.any_op, !transform.any_param
      %comparison = transform.structured.match ops{{["arith.cmpf"]}} in %function : (!transform.any_op)
        -> !transform.any_op
      %predicate = transform.param.constant {predicate} : i64 -> !transform.any_param
      transform.annotate %comparison "predicate" = %predicate : !transform.any_op, !transform.any_param
    }}
    transform.yield
  }}
}}
"""


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner(QUICK) as runner:
        yield runner


def silent(runner: Runner, path: Path) -> tuple[Model, CompiledModel]:
    """Return a model as it is verified, and the model compiled untuned."""
    untuned = CompiledModel(compile_to_bytes(path, cases.FLAGS), recipe=Recipe(cases.FLAGS))
    target: Target = replace(cases.TARGET, flags=FLAGS)
    return with_usable_functions(runner, extract(path, target), untuned), untuned


def scripted(path: Path, predicate: int) -> CompiledModel:
    """Return a model compiled with a script."""
    library = path.with_name(f"library{predicate}.mlir")
    library.write_text(script(predicate))
    program = compile_showing(path, FLAGS, library, (Shown.SCRIPTS,))
    return CompiledModel(program.vmfb, recipe=Recipe(FLAGS, library.read_text(), program.scripts))


@pytest.mark.promise
@pytest.mark.sweep("landing")
@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_a_program_whose_results_say_nothing_is_verified_inside(runner: Runner, tmp_path: Path, text: str) -> None:
    model, untuned = silent(runner, write(tmp_path, text))
    assert model.inside is not None
    assert (model.inside.functions, len(model.entries)) == (("main",), 1)
    assert untuned.recipe == model.inside.untuned


@pytest.fixture(scope="module")
def clamped(runner: Runner, tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, CompiledModel, CompiledModel]:
    """Return a model, and its program without and with a script."""
    path = write(tmp_path_factory.mktemp("clamped"), CLAMPED)
    return *silent(runner, path), scripted(path, GREATER)


def judged(runner: Runner, clamped: tuple[Model, CompiledModel, CompiledModel], recipe: Recipe | None) -> RunResult:
    """Return what becomes of the scripted program if it is said to be compiled in another way."""
    model, untuned, emitted = clamped
    _, (result,) = measure_programs(runner, model, untuned, [replace(emitted, recipe=recipe)])
    return result


@pytest.mark.landing
def test_results_of_its_dispatches_tell_a_right_program_from_a_wrong_one(
    runner: Runner, clamped: tuple[Model, CompiledModel, CompiledModel]
) -> None:
    model, untuned, emitted = clamped
    wrong_one = scripted(Path(model.path), LESS)
    _, (right, wrong) = measure_programs(runner, model, untuned, [emitted, wrong_one])
    assert right.verdict is Verdict.RIGHT
    assert numbers(right.verdict, right.inside) == "numbers checked inside: 3 results of 3 dispatches"
    assert wrong.verdict is Verdict.WRONG
    assert wrong.failure is not None
    assert "the result of @main_dispatch_0_matmul" in wrong.failure.message


@pytest.mark.landing
def test_what_cannot_be_compared_inside_is_not_checked_and_the_reason_is_told(
    runner: Runner, clamped: tuple[Model, CompiledModel, CompiledModel]
) -> None:
    recipe = clamped[2].recipe
    assert recipe is not None
    first, *others = recipe.applied
    not_compared = {
        None: OTHER_DISPATCHES,
        replace(recipe, flags=(*FLAGS, "--iree-opt-data-tiling=true")): OTHER_DISPATCHES,
        replace(recipe, applied=(replace(first, code="0" * 64), *others)): "its scripts apply otherwise",
        replace(recipe, applied=()): "its scripts apply otherwise",
    }
    for each, why in not_compared.items():
        result = judged(runner, clamped, each)
        assert (result.verdict, result.valid) == (Verdict.NOT_CHECKED, None)
        assert why in result.why_not_valid


@pytest.mark.promise
def test_a_script_behind_no_result_that_is_compared_leaves_the_program_unchecked(
    runner: Runner, clamped: tuple[Model, CompiledModel, CompiledModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inside, "_shown", partial(without_dispatches_behind, inside._shown))
    result = judged(runner, clamped, clamped[2].recipe)
    assert result.verdict is Verdict.NOT_CHECKED
    assert "no result that can be compared depends on @main_dispatch_0" in result.why_not_valid


def without_dispatches_behind(shown: object, *arguments: object) -> object:
    program = shown(*arguments)  # type: ignore[operator]
    functions = {name: replace(each, behind=frozenset()) for name, each in program.functions.items()}
    return replace(program, functions=functions)


@pytest.mark.landing
def test_a_program_in_which_nothing_depends_on_the_inputs_is_refused(runner: Runner, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"output 0 is not to be told .*, and no result of its dispatches tells more"):
        silent(runner, write(tmp_path, NOTHING))


@pytest.mark.landing
def test_of_several_functions_those_without_any_dependence_on_inputs_are_left_out(
    runner: Runner, tmp_path: Path
) -> None:
    text = CLAMPED + cases.MATMUL + NOTHING.replace("@main", "@nothing")
    model, _ = silent(runner, write(tmp_path, text))
    assert [entry.name for entry in model.entries] == ["main", "mm"]
    assert model.inside is not None
    assert model.inside.functions == ("main",)
    assert "no result of its dispatches tells more" in model.not_run["nothing"]


@pytest.mark.promise
@pytest.mark.sweep("landing")
def test_a_program_whose_results_say_something_is_not_looked_into(runner: Runner, tmp_path: Path) -> None:
    model, _ = silent(runner, write(tmp_path, cases.MATMUL))
    assert model.inside is None


def test_wide_integers_are_not_compared_where_bytes_may_differ_by_a_rounding() -> None:
    rounded = epilogue("i8", ("arith.sitofp", "arith.mulf", "math.roundeven", "arith.fptosi"), read="i32")
    assert hidden_types([dispatch(matmul(64, "i8", "i32"), rounded)]) == WIDE
    assert hidden_types([dispatch(matmul(64, "i8", "i32"))]) == ()


class AskedRunner:
    """A runner that counts what it is asked, and whose functions' results say nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def repeat(self, program: Program, _: object) -> None:
        self.asked.append(program.entry)
        raise UnverifiableError("output 0 is the same")


@pytest.mark.promise
def test_untuned_code_is_asked_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    model = extract(write(tmp_path, CLAMPED), cases.TARGET)
    monkeypatch.setattr(usable_functions, "why_not_inside", lambda *_: "")
    runner = AskedRunner()
    judged = with_usable_functions(cast("Runner", runner), model, CompiledModel(b"", recipe=Recipe(cases.FLAGS)))
    assert runner.asked == ["main"]
    assert judged.inside is not None
