"""The tests that every rewrite of whole programs must pass; subclass them for your own (pytest collects the class).

::

    class TestColumnProducts(RewriteTests):
        def make(self):
            return ColumnProducts()

        def programs(self):
            return {"square": Path("matmul.mlir").read_text()}

        def others(self):
            return {"no product": Path("add.mlir").read_text()}
"""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path

from iree.compiler import ir

from mlir_sched.compiler.iree_compile import iree_compile_path
from mlir_sched.processes.temporary import temporary_folder
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.repair.repaired import wrong_forms
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.runner import RunnerOptions
from mlir_sched.targets import detect_target
from mlir_sched.transform_scripts.script.form import script_context


class RewriteTests(ABC):
    """The contract of a ``ProgramRewrite`` as tests.

    Attributes:
        target: What is compiled for (``--target``), on one thread.
    """

    target: str = "llvm-cpu"

    @abstractmethod
    def make(self) -> ProgramRewrite:
        """Return the rewrite."""

    @abstractmethod
    def programs(self) -> Mapping[str, str]:
        """Return programs with something to rewrite as MLIR text, by name; small ones, which run in milliseconds."""

    @abstractmethod
    def others(self) -> Mapping[str, str]:
        """Return programs without anything to rewrite."""

    def test_a_rewrite_is_a_frozen_dataclass(self) -> None:
        """Two rewrites with the same options are equal, with the same name and hash: plans are compared."""
        first, second = self.make(), self.make()
        assert is_dataclass(first)
        assert first == second
        assert hash(first) == hash(second)
        assert first.name == second.name
        for each in fields(first):
            try:
                setattr(first, each.name, getattr(second, each.name))
            except AttributeError:
                continue
            raise AssertionError(f"the field {each.name} can be changed: make the dataclass frozen")

    def test_a_rewrite_applies_where_there_is_something_to_rewrite(self) -> None:
        """``finds`` returns it, something empty otherwise, and leaves the program as it is."""
        for name, text in self.programs().items():
            with self._program(text) as program:
                before = str(program)
                assert pipeline.applies([self.make()], StagedProgram(program)), name
                assert str(program) == before, name
        for name, text in self.others().items():
            with self._program(text) as program:
                assert not pipeline.applies([self.make()], StagedProgram(program)), name

    def test_the_script_of_a_rewrite_is_the_same_every_time(self) -> None:
        """Equal programs get equal libraries."""
        for name, text in self.programs().items():
            scripts = []
            for _ in range(2):
                with self._program(text) as program:
                    scripts.append(pipeline.script([self.make()], StagedProgram(program)).text)
            assert scripts[0] == scripts[1], name

    def test_no_rewritten_program_has_a_form_that_iree_compiles_wrong(self) -> None:
        """What a rewrite puts in place needs no repair."""
        for name, text in self.programs().items():
            with self._program(text) as program:
                assert wrong_forms(pipeline.rewritten([self.make()], StagedProgram(program))) == (), name

    def test_rewritten_programs_compute_the_same(self) -> None:
        """The rewrite is proven applied, and the program computes what it computes without the rewrite."""
        target, made = detect_target(self.target, 1), self.make()
        options = RunnerOptions.for_device(target.driver).first_look
        with temporary_folder() as folder:
            path = Path(folder) / "model.mlir"
            with MeasuredPrograms.open(Source(path, target), options) as programs:
                for name, text in self.programs().items():
                    path.write_text(text)
                    default = programs.first(programs.build(Variant(Plan())))
                    attempt = programs.attempt(programs.planned(Plan((made,))), default.model)
                    assert attempt.built is not None, f"{name}: {attempt.why}"
                    (_, timed), failed = programs.time([default, attempt.built])
                    assert failed == {}, name
                    assert timed.timing is not None, name

    @contextmanager
    def _program(self, text: str) -> Iterator[ir.Module]:
        """Parse a program as rewrites see it."""
        target = detect_target(self.target, 1)
        with temporary_folder() as folder, script_context(), ir.Location.unknown():
            path = Path(folder) / "model.mlir"
            path.write_text(text)
            command = [str(iree_compile_path()), *target.flags, str(path), "--compile-to=abi"]
            yield ir.Module.parse(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
