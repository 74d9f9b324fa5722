"""Rewrites one after the other: what they share, and what is left to do behind others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from iree.compiler import ir
from iree.compiler.dialects import arith, transform

from mlir_sched.attributes import REWRITTEN
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.errors import CompilerError, ScriptError, UserError
from mlir_sched.library import RewriteScript
from mlir_sched.library.library import build_library
from mlir_sched.program.rewrites import pipeline, staged_program
from mlir_sched.program.rewrites.replacement import append_sequence, mark, only_op, ops_named
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.rewrites.walked_program import GPU, WalkedProgram
from mlir_sched.tasks.worker.extraction import apply_to_program
from mlir_sched.transform_scripts.script.building import new_library, print_module
from mlir_sched.transform_scripts.script.form import script_context

PROGRAM = """
util.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %sum = arith.addf %x, %x : tensor<8xf32>
  %product = arith.mulf %sum, %sum : tensor<8xf32>
  util.return %product : tensor<8xf32>
}
"""
SUM, PRODUCT = "arith.addf", "arith.mulf"


@dataclass(frozen=True)
class Counted(ProgramRewrite):
    """Leaves programs as they are, and counts how often it looks at one, and is emitted for one."""

    symbol: str
    before: tuple[ProgramRewrite, ...] = ()
    calls: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def name(self) -> str:
        return self.symbol

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:
        return self.before

    def finds(self, program: WalkedProgram) -> bool:
        self.calls["finds"] += 1
        return True

    def append(self, library: ir.Module, program: WalkedProgram, found: bool) -> str:
        self.calls["append"] += 1
        append_sequence(library, self.symbol, lambda module: module, consumes=True)
        return self.symbol


def test_what_a_rewrite_leaves_is_a_program_for_the_same_kind_of_device() -> None:
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM), GPU)
        assert program.after(Counted("one")).device == GPU


def test_a_rewrite_with_which_several_plans_begin_is_asked_and_emitted_once() -> None:
    required, first = Counted("required"), Counted("first")
    others = [Counted(name, (required,)) for name in ("second", "third")]
    plans = [[first], *([first, other] for other in others)]
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM))
        assert all(pipeline.applies(plan, program) for plan in plans)
        scripts = [pipeline.script(plan, program) for plan in plans]
        for each in (first, required):
            assert each.calls == {"finds": 1, "append": 1}, each.name
        fresh = [pipeline.script(plan, StagedProgram(ir.Module.parse(PROGRAM))) for plan in plans]
        assert scripts == fresh, "what is shared does not show"
        assert [script.symbol for script in scripts[1:]] == [
            "first_and_required_and_second",
            "first_and_required_and_third",
        ]
        assert str(program.module) == str(ir.Module.parse(PROGRAM)), "the program stays as it is"


@dataclass(frozen=True)
class Taking(ProgramRewrite):
    """Marks the ops of a name that no other rewrite has marked."""

    symbol: str
    taken: str
    before: tuple[ProgramRewrite, ...] = ()

    @property
    def name(self) -> str:
        return self.symbol

    def requires(self, program: WalkedProgram) -> tuple[ProgramRewrite, ...]:
        return self.before

    def finds(self, program: WalkedProgram) -> bool:
        return any(op.name == self.taken and REWRITTEN not in op.attributes for op in program.ops)

    def append(self, library: ir.Module, program: WalkedProgram, found: bool) -> str:
        def rewrite(module: Any) -> Any:
            mark(ops_named(module, self.taken), self.name)
            return module

        append_sequence(library, self.symbol, rewrite, consumes=True)
        return self.symbol


@dataclass(frozen=True)
class Repeated(OpRewrite[OpSite]):
    """Computes sums as they are computed anyhow."""

    name = "repeated"
    looked: list[WalkedProgram] = field(default_factory=list, compare=False)

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        self.looked.append(program)
        return [OpSite(op) for op in program.ops if op.name == SUM]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        return arith.addf(*inputs)


def test_sites_are_found_once_in_each_program_whatever_is_asked() -> None:
    repeated, last = Repeated(), Taking("last", PRODUCT)
    plans: list[list[ProgramRewrite]] = [[repeated], [repeated, last], [last, repeated]]
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM))
        for plan in plans:
            assert pipeline.applies(plan, program)
            assert pipeline.script(plan, program).mark in ("repeated", "last")
            assert [site.label for site in pipeline.sites(plan, program)] == ["8"]
            pipeline.rewritten(plan, program)
        assert repeated.looked == [program, program.after(last)]


def marks_of(script: RewriteScript) -> dict[str, int]:
    """Return what a script leaves in the program."""
    program = ir.Module.parse(PROGRAM)
    apply_to_program(build_library([], script), program)
    return rewrites_in(str(program))


def test_a_rewrite_that_others_leave_nothing_to_do_is_left_out_and_the_last_one_made_is_the_proof() -> None:
    first, last = Taking("first", SUM), Taking("last", PRODUCT)
    idle = Taking("idle", SUM, (Counted("required"),))
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM))
        assert pipeline.script([first, idle], program) == pipeline.script([first], program)
        assert pipeline.script([first, idle, last], program) == pipeline.script([first, last], program)
        for plan in ([first, idle], [first, idle, last], [first, last, idle]):
            script = pipeline.script(plan, program)
            assert script.mark in marks_of(script)
            assert not pipeline.applies(plan, program), "no such plan is offered"
            assert str(pipeline.rewritten(plan, program).module).count(REWRITTEN) == len(plan) - 1


def test_a_stage_is_made_without_its_librarys_text_and_leaves_the_library_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    repeated = Repeated()
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM))
        before = pipeline.script([repeated], program)
        monkeypatch.setattr(staged_program, "apply_to_program", lambda *_: None, raising=False)
        assert str(program.after(repeated).module).count(REWRITTEN) == 1
        assert pipeline.script([repeated], program) == before


def test_a_rewrite_all_of_whose_sites_stay_as_they_are_is_left_out() -> None:
    repeated, last, kept = Repeated(), Taking("last", PRODUCT), {"repeated": ("8",)}
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM))
        assert marks_of(pipeline.script([last, repeated], program)) == {"last": 1, "repeated": 1}
        assert pipeline.script([last, repeated], program, kept=kept) == pipeline.script([last], program)
        with pytest.raises(UserError, match="nothing is left to do for repeated"):
            pipeline.script([repeated], program, "repeated", kept)


@pytest.mark.parametrize(
    ("emitted", "error", "why"),
    [
        pytest.param(
            lambda module: run_pass(module, "iree-hal-conversion"),
            CompilerError,
            "failed to legalize",
            id="a pass fails",
        ),
        pytest.param(lambda module: only_op(module, "x.y"), ScriptError, "expected parameter", id="an op is missing"),
    ],
)
def test_a_pass_that_fails_is_the_compilers_error_and_a_script_that_does_not_apply_is_not(
    emitted: Callable[[Any], Any], error: type[Exception], why: str
) -> None:
    with script_context(), ir.Location.unknown():
        library = new_library()
        append_sequence(library, "rewrite", lambda module: (emitted(module), module)[1], consumes=True)
        script = RewriteScript("rewrite", "rewrite", print_module(library))
        with pytest.raises(error, match=f"^the rewrite of the program fails: {why}"):
            marks_of(script)


def run_pass(module: Any, name: str) -> Any:
    return transform.ApplyRegisteredPassOp(transform.AnyOpType.get(), module, name).result
