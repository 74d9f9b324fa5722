"""Programs of tasks at the executable-sources phase."""

from __future__ import annotations

from typing import Any

import pytest
from iree.compiler import ir

from mlir_sched.compiler.operations import first_function
from mlir_sched.errors import CompilerError
from mlir_sched.tasks.worker import task_sources
from mlir_sched.transform_scripts.script.form import script_context

PROGRAM = """
hal.executable private @dispatch {
  hal.executable.variant public @embedded target(<"llvm-cpu", "embedded-elf-x86_64">) {
    hal.executable.export public @dispatch ordinal(0) layout(#hal.pipeline.layout<bindings = [
        #hal.pipeline.binding<storage_buffer>]>)
    builtin.module {
      func.func @dispatch() {
        return
      }
    }
  }
}
"""


def test_what_iree_makes_of_a_task_without_verification_is_verified_before_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(module: Any) -> None:
        *_, end = first_function(module.operation).regions[0].blocks[0]
        end.operation.erase()

    with script_context(), ir.Location.unknown():
        monkeypatch.setattr(task_sources, "_run", lambda _: None)
        assert task_sources.compiled_alone(PROGRAM).function.name == "func.func"
        monkeypatch.setattr(task_sources, "_run", broken)
        with pytest.raises(CompilerError, match="terminator"):
            task_sources.compiled_alone(PROGRAM)
