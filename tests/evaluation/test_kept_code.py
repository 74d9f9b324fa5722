"""The code of the fastest candidates of every task is kept for the finalists."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import iree_cases
import numpy as np
from emission_cases import DISPATCH
from replayed_run import task_of

from mlir_sched.compiler import CompileResult, CompilerPool
from mlir_sched.database.record import script_key
from mlir_sched.evaluation.evaluator import CompileAndRun
from mlir_sched.evaluation.kept_code import FINALISTS, KeptCode
from mlir_sched.runner import RunnerOptions
from mlir_sched.space.design_space import DesignSpace
from mlir_sched.space.space import Space
from mlir_sched.targets.target import Target

TASK = task_of("matmul", DISPATCH)


def code(name: str) -> CompileResult:
    return CompileResult(b"", None, name, 0.1)


def test_the_fastest_are_kept_in_whatever_order_they_come() -> None:
    kept = KeptCode()
    ratios = [1.5, 3.0, 0.5, 2.0, 1.0]
    for ratio in ratios:
        kept.keep(TASK, f"script {ratio}", code(f"{ratio}"), ratio)
    found = [ratio for ratio in ratios if kept.of(TASK, f"script {ratio}")]
    assert sorted(found, reverse=True) == sorted(ratios, reverse=True)[:FINALISTS]
    assert kept.of(TASK, "script 3.0") == code("3.0")


def test_every_task_has_code_of_its_own() -> None:
    kept, other = KeptCode(), replace(TASK, key="other")
    kept.keep(TASK, "script", code("a"), 2.0)
    kept.keep_untuned(TASK, code("untuned"))
    assert kept.untuned(TASK) == code("untuned")
    assert kept.of(other, "script") is None
    assert kept.untuned(other) is None


def test_the_search_keeps_what_a_script_with_another_annotation_compiles_to(tmp_path: Path, here: Target) -> None:
    matmul = iree_cases.task_of(tmp_path, iree_cases.MATMUL)
    assert matmul.dispatch is not None
    space, kept = DesignSpace(Space.default(here), matmul.dispatch, here), KeptCode()
    trace = space.sample(np.random.default_rng(0))
    script = space.script(trace)
    options = RunnerOptions()
    with CompileAndRun(matmul.flags, options, workers=1, kept=kept) as evaluator:
        ((_, outcome),) = evaluator.evaluate(matmul, [script], {})
    with CompilerPool(matmul.flags, workers=1, chain_length=options.chain_length) as pool:
        compiled = dict(pool.compile(matmul.source, [None, space.script(trace, "tuned_0_matmul")], matmul.constants))
    untuned, in_library = compiled[0], compiled[1]
    assert outcome.timing is not None, outcome.failure
    found, plain = kept.of(matmul, script_key(script)), kept.untuned(matmul)
    assert found is not None
    assert plain is not None
    assert (found.code, found.binary_hash) == (in_library.code, in_library.binary_hash)
    assert (plain.code, plain.binary_hash) == (untuned.code, untuned.binary_hash)
    assert found.code != plain.code
