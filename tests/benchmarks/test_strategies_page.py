"""The page on search strategies has a row per system, from what is in the files of results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.figures.publishing import FEATURES, Publishing
from benchmarks.figures.result_table import Machine, MachineResults
from benchmarks.pages.strategies import MODELS, NOT_YET, SYSTEMS, part
from benchmarks.strategies import acquisition, live
from benchmarks.strategies.acquisition import Search, Setting
from benchmarks.strategies.arms import ARMS, SCRATCH, Arm
from benchmarks.strategies.matches import Course, Match
from benchmarks.strategies.ranking import ORDER, Ranked
from benchmarks.strategies.ranking import results_table as ranking_table

PUBLISHING = Publishing(None, ("One machine.",), "command")
MACHINE = Machine("a machine", "a processor", (), 2)


def test_what_is_not_measured_is_said_plainly() -> None:
    systems = part({}, "systems").splitlines()[2:]
    assert len(systems) == sum(max(1, len(arms)) for arms in SYSTEMS.values()) + len(MODELS)
    assert all(row.endswith(f"| {NOT_YET} |") for row in systems)
    assert [part({}, what) for what in ("ranking", "live", "networks", "acquisition")] == ["Not measured yet."] * 4


def test_an_arm_has_its_figures_of_every_machine_and_the_others_none(monkeypatch: pytest.MonkeyPatch) -> None:
    course = {arm: Course((speedup,) * 24, (speedup,) * 3, 2.0) for arm, speedup in ((SCRATCH, 1.0), ("rows", 2.0))}
    monkeypatch.setattr(live, "ARMS", {**ARMS, "rows": Arm("rows")})
    table = live.results_table([Match("a", "products", 0, course)], {}, "nothing", PUBLISHING)
    results = {"here": MachineResults(MACHINE, (table,)), "there": MachineResults(MACHINE, (table,))}
    rows = [row for row in part(results, "systems").splitlines() if "`rows`" in row]
    figures = "0.50 (0.50 to 0.50)"
    assert rows == [
        f"| GPTune, Ansor: transfer | `rows` | [{name}](results/{name}.md) | {figures} | {figures} | {figures} "
        "| 0.50, products | 2.00 s | option |"
        for name in results
    ]
    assert part(results, "systems").count(NOT_YET) == len(part({}, "systems").splitlines()) - 3
    assert part(results, "live").count("| rows | ") == 2
    assert part(results, "live").count("- One machine.") == 2


def test_tables_of_models_stand_below_how_they_were_made() -> None:
    table = ranking_table([Ranked("a", "products", ORDER, 0, 0.5, (2.0, 1.5, 1.0))], "xgboost", PUBLISHING)
    text = part({"here": MachineResults(MACHINE, (table,))}, "ranking")
    head, rows, notes = text.split("\n\n")
    assert head.startswith(f"**{table.title}** ([here](results/here.md), {table.date}). Brackets: ")
    assert rows.splitlines()[-1] == "| random order | 1 | 0.50 | 2.00 | 1.50 | 1.00 |"
    assert notes.splitlines()[-1] == "- One machine."
    assert NOT_YET not in text


def test_an_arm_that_is_judged_in_replayed_searches_has_their_verdict() -> None:
    found = [Search("a", "products", way, 0, trials, 8, 6) for way, trials in (("ucb", 20.0), ("mean", 30.0))]
    table = acquisition.results_table(found, Setting(1, 32, 8, 0.02), PUBLISHING)
    systems = part({"any": MachineResults(MACHINE, (table,))}, "systems")
    (row,) = [row for row in systems.splitlines() if "`mean`" in row]
    assert row == "| ALT: active learning | `mean` | [any](results/any.md) | - | - | - | - | - | option |"
    assert systems.count(NOT_YET) == len(part({}, "systems").splitlines()) - 3
    assert "trials on a" in part({"any": MachineResults(MACHINE, (table,))}, "acquisition")


def test_a_table_says_whether_its_models_learnt_from_the_features_of_today() -> None:
    table = ranking_table([Ranked("a", "products", ORDER, 0, 0.5, (2.0, 1.5, 1.0))], "xgboost", PUBLISHING)
    earlier = replace(table, versions={**table.versions, FEATURES: "0123abcd"})
    shown = [part({"here": MachineResults(MACHINE, (each,))}, "ranking") for each in (table, earlier)]
    assert ["other features than those of today (0123abcd)" in text for text in shown] == [False, True]
