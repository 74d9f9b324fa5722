"""Program variants that cannot be had cost themselves, and not the run: each is named with a short reason."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import iree_cases as cases
import pytest
from folders import SUPPORT
from plans import Slow
from rewriting import rewritten_variants, write

from mlir_sched.compiler import ModelCompileError
from mlir_sched.compiler.reasons import reason
from mlir_sched.compiler.worker_process import JobError
from mlir_sched.library import RewriteScript
from mlir_sched.program import building
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants import choosing, programs
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.compile_policy import EXTENDED, CompilePolicy
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.variants.rewritten import ALL, RewrittenVariants
from mlir_sched.runner import Runner
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model

STACK = "m.mlir:1:2: error: 'func.func' op exceeded stack allocation limit of 32768 bytes for function. Got 49152 bytes"
TRACEBACK = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 'a mistake'\n"
MISTAKE = "internal error: KeyError: 'a mistake'"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path, cases.MATMUL)


@pytest.mark.landing
def test_a_failure_or_a_mistake_costs_one_variant_and_not_the_others(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = building.build_variant
    failing = {"O3": ModelCompileError(STACK), "data-tiling": JobError(TRACEBACK)}

    def build_variant(path: Path, target: Any, variant: Variant, *others: Any) -> Any:
        if variant.name in failing:
            raise failing[variant.name]
        return whole(path, target, variant, *others)

    monkeypatch.setattr(building, "build_variant", build_variant)
    monkeypatch.setattr(building, "with_usable_functions", lambda runner, model, compiled: model)
    monkeypatch.setattr(programs, "time_variants", lambda built, runner: (tuple(built), {}))
    no_rewrite = RewrittenVariants((), {"r": "no"}, ("t",))
    monkeypatch.setattr(programs, "rewriting", lambda path, target: nullcontext(lambda: no_rewrite))
    found = build_variants(MeasuredPrograms(Source(model, cases.TARGET), cast("Runner", None)))
    assert found.built[0].variant.name == "default"
    assert {name: found.left_out[name] for name in ("O3", "data-tiling", "r")} == {
        "O3": "IREE does not compile it: IREE's code needs 49152 bytes of stack, more than its limit of 32768",
        "data-tiling": MISTAKE,
        "r": "no",
    }
    assert found.internal_errors == ("t", f"data-tiling: {TRACEBACK}")
    assert found.failed == ("O3",), "a mistake of ours says nothing of the variant"
    kept = found.with_variant(found.built[0], {"another": "it is slower"})
    assert (kept.built, kept.internal_errors) == (found.built, found.internal_errors)
    assert kept.left_out == {**found.left_out, "another": "it is slower"}


class NoneExtended(CompilePolicy):
    """A choice that leaves out what another variant extends."""

    def should_compile_beside(self, name: str, *, extended: bool) -> bool:
        assert (name, extended) == ("a", True)
        return False


@pytest.mark.parametrize(
    ("failing", "built", "why"),
    [("", "a+b", EXTENDED), ("a+b", "a", "IREE does not compile it: no")],
)
def test_a_variant_that_is_extended_may_be_left_out_where_its_extension_compiles(
    failing: str, built: str, why: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build_variant(path: Path, target: Target, variant: Variant, *others: object) -> BuiltVariant:
        del others
        if variant.name == failing:
            raise ModelCompileError("error: no")
        return BuiltVariant(variant, Model(str(path), (), (), target.flags), variant.name.encode(), None, ())

    plans = Plan((Slow("a"),)), Plan((Slow("a"), Slow("b")))
    rewritten = RewrittenVariants(tuple(Variant(plan, RewriteScript(plan.name, "@r", "")) for plan in plans))
    monkeypatch.setattr(building, "build_variant", build_variant)
    monkeypatch.setattr(programs, "build_variant", build_variant)
    monkeypatch.setattr(programs, "rewriting", lambda path, target: nullcontext(lambda: rewritten))
    monkeypatch.setattr(choosing, "program_hash", lambda vmfb: vmfb.decode())
    monkeypatch.setattr(building, "with_usable_functions", lambda runner, model, compiled: model)
    monkeypatch.setattr(programs, "time_variants", lambda built, runner: (tuple(built), {}))
    found = build_variants(MeasuredPrograms(Source(model, cases.TARGET), cast("Runner", None)), NoneExtended())
    assert built in [b.variant.name for b in found.built]
    (left_out,) = {"a", "a+b"} - {built}
    assert found.left_out[left_out] == why


@pytest.mark.promise
@pytest.mark.parametrize(
    ("job", "names", "left_out", "internal"),
    [
        ("with_a_mistake", ["applying"], {"raising": MISTAKE}, 1),
        ("with_a_refusal", ["applying"], {"refused": "IREE does not get through it: 'linalg.add' op is bad"}, 0),
        ("refused_whole", [], {ALL: "IREE does not get through them: 'linalg.add' op is bad"}, 0),
        ("with_a_crash", [], {ALL: "IREE does not get through them: the compiler process was killed by SIGABRT"}, 0),
        ("lost", [], {ALL: "internal error: ZeroDivisionError: a mistake"}, 1),
    ],
)
def test_a_rewrite_that_fails_costs_no_more_than_the_rewrites(
    job: str, names: list[str], left_out: dict[str, str], internal: int, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SUPPORT))
    monkeypatch.setattr("mlir_sched.program.variants.rewritten._JOB", f"broken_rewrites:{job}")
    found = rewritten_variants(model, cases.TARGET)
    assert [variant.name for variant in found.variants] == names
    assert found.left_out == left_out
    assert len(found.internal_errors) == internal
    assert all("Traceback" in text for text in found.internal_errors)


def test_the_reason_of_a_traceback_is_its_exception() -> None:
    assert reason(TRACEBACK) == MISTAKE
    assert reason("Traceback (most recent call last)\nValueError: error: " + 200 * "x").endswith("x ...")
