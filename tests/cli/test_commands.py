"""What every command does: help, errors, exit codes."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from command_line import Cli

from mlir_sched import __version__
from mlir_sched.cli.tune import (
    MOST_ROWS,
    as_in_program,
    dispatch_table,
    failure_lines,
    rest_lines,
    rows_that_matter,
    summary_lines,
)
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.tuned_folder.result import DispatchResult, ProgramResult, TuneResult


def test_version_and_help_are_printed(cli: Cli) -> None:
    assert cli("--version").out == f"mlir-sched {__version__}\n"
    ended = cli("--help")
    assert ended.code == 0
    assert all(name in ended.out for name in ("tune", "inspect", "replay", "doctor"))


def test_the_folder_of_the_cmake_package_is_printed(cli: Cli) -> None:
    folder = Path(cli("--cmake-dir").out.removesuffix("\n"))
    assert folder.is_absolute()
    assert (folder / "mlir_sched-config.cmake").is_file()


@pytest.mark.parametrize("arguments", [(), ("frobnicate",), ("tune",), ("tune", "model.mlir", "--trials", "many")])
def test_a_wrong_command_line_ends_with_2(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("tune", ""),
        ("tune", "model.mlir", "-o", ""),
        ("tune", "model.mlir", "--store", ""),
        ("tune", "model.mlir", "--output="),
        ("replay", "", "model.mlir"),
        ("compile", "model.mlir", "--tuned", ""),
        ("inspect", ""),
        ("relocate", ""),
    ],
)
def test_an_empty_argument_is_not_taken_for_the_working_directory(cli: Cli, arguments: tuple[str, ...]) -> None:
    ended = cli(*arguments)
    assert ended.code == 2
    assert "is empty" in ended.err or "has no value" in ended.err
    assert [path.name for path in cli.folder.iterdir()] == ["model.mlir"]


@pytest.mark.parametrize(("model", "why"), [("missing.mlir", "no such file"), (".", "not a file")])
def test_compile_refuses_a_model_that_is_no_file(cli: Cli, model: str, why: str) -> None:
    assert cli.refused("compile", model, "--tuned", ".") == f"error: {model}: {why}"


def test_errors_are_documents_when_json_is_asked_for(cli: Cli) -> None:
    ended = cli("tune", "missing.mlir", "--json")
    assert ended.code == 2
    assert json.loads(ended.out) == {"error": "missing.mlir: no such file", "exit_code": 2}
    assert json.loads(cli("tune", "model.mlir", "--json", "--no-such-option").out)["exit_code"] == 2


def test_an_error_of_ours_is_one_line_and_a_log(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlir_sched.replaying.inspection.read_tuned_folder", lambda _: 1 / 0)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(cli.folder))
    ended = cli("inspect", cli.folder)
    assert ended.code == 1
    assert ended.message.startswith("internal error: ZeroDivisionError: division by zero\n")
    assert "Traceback" not in ended.err
    (log,) = cli.folder.glob("mlir-sched-error-*.log")
    assert "Traceback" in log.read_text()


def test_a_mistake_of_ours_is_shown_apart_from_candidates_that_fail() -> None:
    assert failure_lines({}) == []
    assert failure_lines({"run_memory": 2}) == ["failed candidates: run_memory 2"]
    ours = failure_lines({"internal_error": 1, "run_memory": 2})
    assert ours[0] == "failed candidates: run_memory 2, internal_error 1"
    assert "a bug in mlir-sched" in ours[1]


def test_the_table_has_the_dispatches_that_take_most_time_and_counts_the_rest() -> None:
    def dispatch(number: int, calls: int, untuned_s: float, tuned_s: float | None = None) -> DispatchResult:
        untuned, tuned = (Timing(s, s, s, 20, 1.0, 1.0, 1.0, 0) if s else None for s in (untuned_s, tuned_s))
        return DispatchResult(f"dispatch {number}", "", "", calls, untuned, tuned)

    few = [dispatch(number, 1, 1e-3 * number) for number in range(MOST_ROWS)]
    assert rows_that_matter(few) == (few, ())
    assert rest_lines(few, ()) == []
    script, copy = dispatch(20, 4, 9e-3, 5e-4), DispatchResult("copy", "", "", 1, None, in_program_s=1e-6)
    heavy = dispatch(21, 50, 1e-3)
    shown, rest = rows_that_matter([*few, copy, script, heavy])
    assert shown == [heavy, *few[:1:-1], script]
    assert rest == [few[1], copy, few[0]]
    assert rest_lines(shown, rest) == [
        "and 3 dispatches that take 1 ms of 157 ms per run, 0 of them with a script; report.html shows all"
    ]


def test_estimates_are_called_estimates_in_every_line_that_is_printed() -> None:
    untuned, tuned = Timing.estimated(2e-3, 2e-3), Timing.estimated(1e-3, 2e-3)
    dispatches = DispatchResult("d0", "", "", 3, untuned, tuned, share=0.5), DispatchResult("d1", "", "", 1, None)
    program = ProgramResult(untuned, tuned, {"default": 1.0}, "default", "", verdict=Verdict.NOT_CHECKED)
    result = TuneResult(
        *("model.mlir", "cuda:sm_90", 1, 0, 8, 8, 1.0, 1.0, {}, False, program, {}, (), dispatches),
        *("tuned", "store", (), 0.5, None, {}),
        processor="NVIDIA H100 (sm_90)",
        measured=False,
    )
    lines = [*rest_lines(dispatches[:1], dispatches[1:], measured=False), *summary_lines(result)]
    figures = [line for line in lines if re.search(r"\d (ms|us|s per)|\d%|\dx", line)]
    assert len(figures) == 3
    assert all(re.search(r"est\.|estimated|by the model", line) for line in figures)
    assert any("(8 estimated now)" in line for line in lines)
    assert "numbers were not checked" in next(line for line in lines if line.startswith("NOT MEASURED: "))
    table = dispatch_table([replace(dispatches[0], untuned=None, in_program_s=2e-3)], measured=False)
    heads = [str(column.header) for column in table.columns]
    assert heads[2:6] == ["share, est.", "untuned, est.", "tuned, est.", "speed-up, est."]
    assert list(table.columns[3].cells) == ["2 ms"], "untuned code that was not searched has an estimate, too"
    assert "est." not in "".join(str(column.header) for column in dispatch_table(dispatches).columns)


def test_numbers_that_were_not_checked_and_dispatches_of_other_times_alone_are_named() -> None:
    timing = Timing(1.464, 1.464, 1.464, 20, 1.0, 1.0, 1.0)
    dispatches = tuple(DispatchResult(f"d{i}", "", "", 1, timing, in_program_s=0.069 * (1 + 20 * i)) for i in range(2))
    program = ProgramResult(timing, timing, {}, "default", "local-sync", verdict=Verdict.NOT_CHECKED)
    result = TuneResult(
        *("model.mlir", "llvm-cpu", 1, 0, 8, 8, 1.0, 1.0, {}, False, program, {}, (), dispatches),
        *(None, "store", (), None, None, {}),
    )
    text = "\n".join(summary_lines(result))
    assert "NUMBERS NOT CHECKED" in text
    assert text.count("(rely on the whole program's time): d0\n") == 1


@pytest.mark.parametrize(
    ("default", "searched", "text"),
    [
        (None, None, ""),
        (0.995, 0.99, "99.5% of the untuned program's time is in dispatches that can have scripts"),
        (
            0.5,
            0.99,
            "50.0% of the untuned program's time is in dispatches that can have scripts, and 99.0% as attention",
        ),
    ],
)
def test_how_much_of_the_time_can_have_scripts(default: float | None, searched: float | None, text: str) -> None:
    timing = Timing(1e-3, 1e-3, 1e-3, 20, 1.0, 1.0, 1.0)
    program = ProgramResult(timing, timing, {}, "default", "local-sync", verdict=Verdict.RIGHT)
    result = TuneResult(
        *("model.mlir", "llvm-cpu", 1, 0, 8, 8, 1.0, 1.0, {}, False, program, {}, (), ()),
        *(None, "store", (), default, None, {}),
        widest_variant="attention",
        widest_share=searched,
    )
    assert result.coverage == text
    assert not text or text in summary_lines(result)


@pytest.mark.parametrize(
    ("alone_s", "inside_s", "alike"),
    [(1.464, 0.069, False), (0.069, 0.069, True), (0.069, 1.464, False), (0.1, 0.069, True), (3e-6, 1e-6, True)],
)
def test_a_dispatch_that_is_other_code_alone_than_in_the_program_is_told_apart(
    alone_s: float, inside_s: float, alike: bool
) -> None:
    """A strided 1x1 convolution of ResNet-50 takes 1464 ms alone, 69 in the model; calls have a cost of their own."""
    untuned = Timing(alone_s, alone_s, alone_s, 20, 1.0, 1.0, 1.0, 0)
    assert as_in_program(DispatchResult("dispatch", "", "", 1, untuned, None, in_program_s=inside_s)) is alike
    assert as_in_program(DispatchResult("dispatch", "", "", 1, untuned, None))
