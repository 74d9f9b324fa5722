"""A benchmark puts its table into a file of results only with what speaks against it, and says how it was run."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.figures.publishing import Publishing, options_of, parsed, this_machine, versions
from benchmarks.figures.result_file import load_results
from benchmarks.figures.result_table import Unit
from benchmarks.figures.tables import cell_text, conclusions
from benchmarks.operators import gains
from benchmarks.tool.tool_speed import results_table
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.targets.target import LOCAL_SYNC, Target
from mlir_sched.tuned_folder.result import ProgramResult, TuneResult


def publishing(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Publishing:
    monkeypatch.setattr(sys, "argv", ["python -m benchmarks speed", *arguments])
    parser = options_of("Measures the speed.")
    parser.add_argument("--trials")
    return parsed(parser)[1]


def test_the_command_is_what_repeats_the_measurement(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "machine.json"
    found = publishing(
        monkeypatch, "--trials", "8", "--results", str(path), "--against", "One run.", "--against", "Busy."
    )
    assert found == Publishing(path, ("One run.", "Busy."), "python -m benchmarks speed --trials 8")
    found = publishing(monkeypatch, "--against=One run.", f"--results={path}", "--trials=8")
    assert found == Publishing(path, ("One run.",), "python -m benchmarks speed --trials=8")
    assert publishing(monkeypatch, "--trials", "8").path is None


def test_a_table_without_what_speaks_against_us_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        publishing(monkeypatch, "--results", str(tmp_path / "machine.json"))
    assert ended.value.code == 2
    assert "--results needs --against" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["--trials=/data/x.json", "--trials=~/x.json"])
def test_a_command_that_names_a_folder_of_this_machine_is_not_published(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], word: str
) -> None:
    path = tmp_path / "machine.json"
    with pytest.raises(SystemExit):
        publishing(monkeypatch, word, "--results", str(path), "--against", "One run.")
    assert f"name {word} relative to this folder" in capsys.readouterr().err
    assert publishing(monkeypatch, "--trials", "models/model.mlir", "--results", str(path), "--against", "One run.")


def test_a_folder_that_is_missing_is_named_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        publishing(monkeypatch, "--results", str(tmp_path / "gone" / "machine.json"), "--against", "One run.")

    assert f"there is no folder {tmp_path / 'gone'}" in capsys.readouterr().err


def test_a_file_that_cannot_take_a_table_is_refused_before_anything_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "machine.json"
    path.write_text("[]")
    with pytest.raises(SystemExit) as ended:
        publishing(monkeypatch, "--results", str(path), "--against", "One run.")
    assert ended.value.code == 2
    assert "machine.json" in capsys.readouterr().err
    assert path.read_text() == "[]"


@pytest.mark.promise
def test_a_table_is_printed_and_added_with_the_machine_that_it_was_measured_on(
    here: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = Publishing(tmp_path / "machine.json", ("One run.",), "python -m benchmarks tool_speed")
    assert place.path is not None
    place.show(results_table([("traces", "3,000 per second")], place), here)
    assert "3,000 per second" in capsys.readouterr().out
    found = load_results(place.path)
    assert found.machine == this_machine(here)
    assert here.processor in found.machine.processor
    assert found.table("tool-speed").rows == (("traces", ("3,000 per second",)),)
    assert found.table("tool-speed").against == ("One run.",)


def test_versions_are_those_that_requirements_pin() -> None:
    found = versions(("torch==2.13.0+cpu", "numpy", "--extra-index-url", "https://example.org"))
    assert list(found) == ["mlir-sched", "IREE", "torch"]
    assert found["torch"] == "2.13.0+cpu"


def test_gains_of_several_seeds_are_a_row() -> None:
    timing = Timing(1e-3, 1e-3, 1e-3, 9, 1.5, 1.4, 1.6)
    arguments = argparse.Namespace(target="llvm-cpu", threads=1, trials=64, seeds=2)
    runs = {
        "several": [tuned(replace(timing, ratio=ratio)) for ratio in (1.2, 2.0, 1.5)],
        "one": [tuned(replace(timing, ratio=0.9, ratio_low=0.8, ratio_high=0.95))],
    }
    table = gains.results_table(runs, arguments, Publishing(Path("machine.json"), ("Two seeds.",), "a command"))
    (_, several), (_, one) = table.rows
    assert cell_text(several[1], Unit.RATIO) == "1.50 (1.20 to 2.00)"
    assert cell_text(one[1], Unit.RATIO) == "0.90 (0.80 to 0.95)"
    assert (table.seeds, several[3]) == ((0, 1), "O3")
    assert "**Slower**: one. **Faster**: several." in list(conclusions(table))


def tuned(timing: Timing) -> TuneResult:
    program = ProgramResult(replace(timing, ratio=1.0), timing, {}, "O3", LOCAL_SYNC, verdict=Verdict.RIGHT)
    return TuneResult(
        "m.mlir", "llvm-cpu", 1, 0, 8, 8, 1.0, 1.0, {}, False, program, {}, (), (), None, "store", (), None, None, {}
    )
