"""While the compiler goes on with a program, other work on its dispatches is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import cast

import iree_cases as cases
import pytest
from plans import flagged

from mlir_sched.compiler import ModelCompileError
from mlir_sched.compiler.iree_compile import CompiledProgram
from mlir_sched.program import building
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import Runner
from mlir_sched.tasks import Model
from mlir_sched.tasks.task import Task

MODEL = Model("m.mlir", (), (Task("k", "dispatch_0", 1, "", (), (), None, "", ()),), ())


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("default", [False, True])
def test_work_on_its_dispatches_begins_once_they_are_known_and_ends_with_the_compiler(
    default: bool, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = list[str]()

    def compiled() -> CompiledProgram:
        said.append("the compiler ends")
        if fails:
            raise ModelCompileError("error: an op is not legal")
        return CompiledProgram(b"vmfb")

    @contextmanager
    def compiling(*_: object) -> Iterator[Callable[[], CompiledProgram]]:
        said.append("the compiler begins")
        yield compiled

    def extract(*_: object, **__: object) -> Model:
        said.append("the dispatches are known")
        return MODEL

    @contextmanager
    def beside(tasks: Sequence[Task]) -> Iterator[None]:
        said.append(f"work on {tasks[0].name} begins")
        try:
            yield
        finally:
            said.append("work ends")

    monkeypatch.setattr(building, "compiling", compiling)
    monkeypatch.setattr(building, "extract", extract)
    programs = MeasuredPrograms(Source(Path("m.mlir"), cases.TARGET, beside=beside), cast("Runner", None))
    if default:
        with pytest.raises(ModelCompileError) if fails else nullcontext():
            programs.build(flagged("default"))
    else:
        assert (programs.attempt(flagged("O3"), MODEL).built is None) == fails
    assert said == [
        "the compiler begins",
        "the dispatches are known",
        "work on dispatch_0 begins",
        "the compiler ends",
        "work ends",
    ]
