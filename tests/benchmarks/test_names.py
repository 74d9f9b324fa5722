"""Benchmarks are called by name: ``python -m benchmarks NAME``."""

from __future__ import annotations

import ast
import re
import sys
from importlib.util import find_spec

import pytest
from folders import ROOT

from benchmarks import __main__ as command
from benchmarks.__main__ import PROGRAMS, what_it_does
from benchmarks.peers.make_peer import REQUIREMENTS, peer_spec

NAMED = re.compile(r"python -m benchmarks ([a-z_.]*[a-z_])")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_has_a_program_that_says_what_it_does(name: str) -> None:
    assert len(what_it_does(PROGRAMS[name]).split()) > 2


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_name_has_a_program_that_runs(name: str) -> None:
    file = ROOT.joinpath("benchmarks", *PROGRAMS[name].split(".")).with_suffix(".py")
    defined = ast.parse(file.read_text()).body
    assert "main" in [each.name for each in defined if isinstance(each, ast.FunctionDef)]


def test_the_names_in_texts_exist() -> None:
    files = [*ROOT.glob("docs/**/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("benchmarks/**/*.py")]
    named = {name for file in files if ".peers" not in file.parts for name in NAMED.findall(file.read_text())}
    assert named
    assert named <= PROGRAMS.keys()


def test_modules_that_are_run_in_processes_of_their_own_exist() -> None:
    quoted = re.compile(r'"(benchmarks(?:\.[a-z_]+)+)"')
    texts = [path.read_text() for path in ROOT.glob("benchmarks/**/*.py") if ".peers" not in path.parts]
    named = {name for text in texts for name in quoted.findall(text)}
    named |= {peer_spec(name).module for name in REQUIREMENTS}
    assert "benchmarks.peers.peer_torch" in named
    assert [name for name in named if find_spec(name) is None] == []


def test_another_name_is_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "nothing"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("error: there is no benchmark 'nothing'; the names are operators, ")


def test_a_users_mistake_ends_a_benchmark_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks", "time_model", "--target", "llvm-cpu"])
    with pytest.raises(SystemExit) as ended:
        command.main()
    assert str(ended.value.code).startswith("error: programs for the target llvm-cpu are always run")


def test_without_a_name_all_are_listed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["benchmarks"])
    command.main()
    listed = capsys.readouterr().out.splitlines()[1:]
    assert [line.split()[0] for line in listed] == list(PROGRAMS)
