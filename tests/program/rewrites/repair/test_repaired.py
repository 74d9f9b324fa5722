"""Programs of a form that IREE compiles wrong: IREE's own code is still wrong, the repaired program is right."""

from __future__ import annotations

from pathlib import Path

import pytest
from channels_first_networks import residual_branches
from iree.compiler import ir
from iree_cases import FLAGS
from partial_reads import IN_PART, WHOLE
from rewriting import abi, compiled_to, library_for, write

from mlir_sched.compiler import compile_to_bytes
from mlir_sched.compiler.iree_compile import rewrites_in
from mlir_sched.compiler.version import SUPPORTED
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import pipeline
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.repair.repaired import REPAIRS, wrong_forms
from mlir_sched.program.rewrites.staged_program import StagedProgram
from mlir_sched.transform_scripts.script.form import script_context


def forms_of(text: str) -> list[str]:
    with script_context(), ir.Location.unknown():
        return [form.name for form in wrong_forms(StagedProgram(ir.Module.parse(text)))]


@pytest.mark.parametrize("name", IN_PART)
def test_a_value_that_is_read_in_part_beside_others_is_found(name: str) -> None:
    assert forms_of(IN_PART[name].text) == ["partial_read"]


@pytest.mark.parametrize("name", WHOLE)
def test_a_value_that_is_read_whole_or_by_one_op_alone_is_no_form(name: str) -> None:
    assert forms_of(WHOLE[name].text) == []


def test_an_argument_that_is_read_in_part_is_no_form() -> None:
    argument = IN_PART["rows"].text.replace("ins(%y", "ins(%x")
    assert forms_of(argument) == []


def test_every_form_is_one_of_the_release_that_is_supported() -> None:
    assert [repair.form.name for repair in REPAIRS if SUPPORTED not in repair.form.versions] == []


@pytest.mark.promise
@pytest.mark.sweep("landing", keep="rows")
@pytest.mark.parametrize("name", IN_PART)
def test_plain_code_of_a_form_is_wrong_and_the_repaired_program_right(name: str, tmp_path: Path) -> None:
    program = IN_PART[name]
    model = write(tmp_path, program.text)
    assert not program.is_right(compile_to_bytes(model, FLAGS)), "IREE mended it: take the form off the list"
    flags = library_for(Plan(), model, tmp_path)
    assert rewrites_in(compiled_to(model, flags, "preprocessing")) == {"repaired": 1}
    assert program.is_right(compile_to_bytes(model, flags))


@pytest.mark.landing
@pytest.mark.parametrize("name", WHOLE)
def test_plain_code_of_what_is_no_form_is_right(name: str, tmp_path: Path) -> None:
    assert WHOLE[name].is_right(compile_to_bytes(write(tmp_path, WHOLE[name].text), FLAGS))


@pytest.mark.promise
def test_a_network_with_channels_last_has_no_form(tmp_path: Path) -> None:
    with script_context(), ir.Location.unknown():
        program = StagedProgram(ir.Module.parse(abi(write(tmp_path, residual_branches()))))
        assert wrong_forms(program) == ()
        assert wrong_forms(pipeline.rewritten([ChannelsLast()], program)) == ()
