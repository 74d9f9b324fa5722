"""Plans that begin alike share what their first rewrites make of a program."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from iree.compiler import ir

from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.replacement import append_sequence
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.transform_scripts.script.form import script_context

PROGRAM = """
util.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  util.return %x : tensor<8xf32>
}
"""


@dataclass(frozen=True)
class Counted(ProgramRewrite):
    """Leaves programs as they are, and counts how often it is asked about one, and emitted for one."""

    symbol: str
    before: tuple[ProgramRewrite, ...] = ()
    calls: Counter[str] = field(default_factory=Counter, compare=False)

    @property
    def name(self) -> str:
        return self.symbol

    def requires(self, program: ir.Module) -> tuple[ProgramRewrite, ...]:
        return self.before

    def applies(self, program: ir.Module) -> bool:
        self.calls["applies"] += 1
        return True

    def append(self, library: ir.Module, program: ir.Module) -> str:
        self.calls["append"] += 1
        append_sequence(library, self.symbol, lambda module: module, consumes=True)
        return self.symbol


def test_a_rewrite_with_which_several_plans_begin_is_asked_and_emitted_once() -> None:
    required, first = Counted("required"), Counted("first")
    others = [Counted(name, (required,)) for name in ("second", "third")]
    plans = [[first], *([first, other] for other in others)]
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(PROGRAM))
        assert all(pipeline.applies(plan, program) for plan in plans)
        scripts = [pipeline.script(plan, program) for plan in plans]
        for each in (first, required):
            assert each.calls == {"applies": 1, "append": 1}, each.name
        fresh = [pipeline.script(plan, StagedProgram(ir.Module.parse(PROGRAM))) for plan in plans]
        assert scripts == fresh, "what is shared does not show"
        assert [script.symbol for script in scripts[1:]] == [
            "first_and_required_and_second",
            "first_and_required_and_third",
        ]
        assert str(program.module) == str(ir.Module.parse(PROGRAM)), "the program stays as it is"
