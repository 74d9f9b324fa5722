"""Response files and the flags in them, read back by us and by the compiler itself."""

from __future__ import annotations

import random
from pathlib import Path

import iree_cases as cases
import pytest
from applied_sequences import applied_sequences

from mlir_sched.compiler.flags import library_flags, read_response_file, write_response_file
from mlir_sched.errors import UserError

LIBRARY = """
module attributes {transform.with_named_sequence} {
  transform.named_sequence @__transform_main(%program: !transform.any_op {transform.readonly}) {
    transform.yield
  }
  transform.named_sequence @__kernel_config(%variant: !transform.any_op {transform.readonly}) {
    %name = transform.param.constant "marked" -> !transform.any_param
    transform.annotate %variant "mlir_sched.applied" = %name : !transform.any_op, !transform.any_param
    transform.yield
  }
}
"""
NAMES = (
    "plain", "two words", "it's", 'a "b" c', "it's ours", "back\\slash", "trailing\\", "{a, b}", "a,b=c;d", "#1",
    "größe 大", "new\nline", "tab\t", "(a) [b] <c>", "$HOME `id` %d & *",
)  # fmt: skip
"""Folders' names, each with what one of the readers on the way takes for its own: the response file, the option, the
pipeline, a shell."""


@pytest.mark.promise
@pytest.mark.parametrize("name", NAMES)
def test_the_compiler_finds_a_library_in_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    library = folder / "library.mlir"
    library.write_text(LIBRARY)
    (tmp_path / "model.mlir").write_text(cases.MATMUL)
    flags = (*cases.FLAGS, *library_flags(library))
    (folder / "flags.txt").write_text(write_response_file(flags))
    assert read_response_file((folder / "flags.txt").read_text()) == flags
    assert applied_sequences(tmp_path / "model.mlir", (f"@{folder / 'flags.txt'}",), None) == {"marked": 1}


@pytest.mark.parametrize("name", ["user@host", "a{b", "a}b", "}{", 'it\'s "both"'])
def test_a_folder_that_no_flag_can_name_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="choose another folder"):
        library_flags(Path("/somewhere") / name / "library.mlir")


@pytest.mark.parametrize("seed", range(20))
def test_what_is_written_is_read_back(seed: int) -> None:
    rng = random.Random(seed)
    flags = tuple("--" + "".join(rng.choices("ab \t\n\"'\\{}@#", k=rng.randint(0, 12))) for _ in range(5))
    assert read_response_file(write_response_file((*flags, ""))) == (*flags, "")


def test_words_are_read_as_llvm_reads_them() -> None:
    assert read_response_file("a\\ b 'c \\' d'\"e f\"g\n\n h\\\\") == ("a b", "c ' de fg", "h\\")
    assert read_response_file("") == ()
    with pytest.raises(ValueError, match="no closing quotation"):
        read_response_file("--a='b")
