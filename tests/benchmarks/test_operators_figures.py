"""The figures of the operators' benchmark: views, seeds, means, ceilings, and what the report says of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from fixed_targets import FIXED

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.report import means_of, notes_of, tuning_means_of, views_of
from benchmarks.figures.result_table import Unit
from benchmarks.figures.roofline import Level, Roofline, highest, levels_of
from benchmarks.figures.rows import CALLS, IREE, KERNELS, PLAIN, PLAIN_CALLER, Row, Session, row_of
from benchmarks.figures.sampling import Samples, TimedWay, Unresolved, kernel_time, ratio
from benchmarks.figures.tables import cell_text, conclusions
from benchmarks.kept import converter
from benchmarks.operators.comparison import SESSION, Setting
from benchmarks.operators.programs import TUNED
from benchmarks.operators.results import print_results, results_table, view_tables, write_markdown
from benchmarks.peers.make_peer import peer_spec
from benchmarks.peers.tuning import Tuning

ROOFLINE = Roofline((0,), 100e9, (Level("L1", 1 << 15, 200e9), Level("L2", 1 << 20, 100e9), Level("DRAM", 0, 20e9)))


IREE_CALL_S = 2e-6
SETTING = Setting(
    FIXED, (0,), (peer_spec("tvm"),), 64, (0, 1), rounds=20, sample_s=0.02, patience_s=120.0, prepare_timeout_s=10.0
)
PUBLISHING = Publishing(Path("machine.json"), ("Two seeds.",), "python -m benchmarks")


def samples(
    label: str, calls_s: Sequence[float], *, peer: str = IREE, detail: str = "", way: int = 0, empty: bool = False
) -> Samples:
    return Samples(TimedWay(peer, way, label, detail, empty), tuple(calls_s), (True,) * len(calls_s))


def empty_call(calls_s: Sequence[float] = (IREE_CALL_S,) * 8, *, peer: str = IREE, label: str = "") -> Samples:
    return samples(label, calls_s, peer=peer, empty=True)


def session(
    *taken: Samples, seed: int = 0, notes: tuple[str, ...] = (), tuning: Mapping[str, Tuning] | None = None
) -> Session:
    return Session(
        seed, (*taken, empty_call()), {TUNED: Tuning(8, 3.0), **(tuning or {})}, notes, 10_000_000, 100, ROOFLINE
    )


def constant(times: Mapping[str, float]) -> tuple[Samples, ...]:
    return tuple(samples(label, [t] * 8) for label, t in times.items())


def row(
    name: str, times: dict[str, float], notes: tuple[str, ...] = (), tuning: Mapping[str, Tuning] | None = None
) -> Row:
    return row_of(name, [session(*constant(times), notes=notes, tuning=tuning)])


def test_ratio_pairs_the_samples_of_a_round_and_drops_disturbed_ones() -> None:
    own = Samples(TimedWay("iree", 0, TUNED), (1.0, 2.0, 4.0, 1.0, 1.0, 1.0, 1.0), (True,) * 7)
    other = Samples(TimedWay("torch", 0, "torch"), (2.0, 4.0, 8.0, 2.0, 2.0, 2.0, 90.0), (True,) * 6 + (False,))
    found = ratio(other, own)
    assert (found.low, found.median, found.high) == (2.0, 2.0, 2.0)


def test_a_kernel_is_a_call_without_the_empty_call_of_its_column() -> None:
    taken = (
        samples("IREE default", [12e-6] * 6),
        samples(TUNED, [8e-6] * 6, detail="slow"),
        samples(TUNED, [6e-6] * 6, detail="fast", way=1),
        samples("torch eager", [9e-6] * 6, peer="torch"),
        samples("torch compile", [19e-6] * 6, peer="torch", way=1),
        empty_call([3e-6] * 6, peer="torch"),
        empty_call([10e-6] * 6, peer="torch", label="torch compile"),
    )
    found = row_of("A", [session(*taken)])
    times = {
        name: {label: round(c.time_s * 1e6, 6) for label, c in view.columns.items()}
        for name, view in found.views.items()
    }
    assert times == {
        CALLS: {"IREE default": 12, TUNED: 6, "torch eager": 9, "torch compile": 19},
        KERNELS: {"IREE default": 10, TUNED: 4, "torch eager": 6, "torch compile": 9},
    }
    assert found.calls.columns[TUNED].details == ("fast",)
    against = found.kernels.against(["torch eager", "torch compile"])
    assert against is not None
    assert (against.label, round(against.ratio, 6), against.one_day) == ("torch eager", 1.5, False)


def test_a_row_shorter_than_the_empty_call_has_no_kernel_time_and_no_part_in_its_mean() -> None:
    varying = [15e-6, 17e-6, 19e-6, 21e-6, 16e-6, 20e-6, 18e-6, 22e-6]
    short = session(
        samples("IREE default", [44e-6] * 8), samples(TUNED, [s - 1e-6 for s in varying]), empty_call(varying)
    )
    with pytest.raises(Unresolved, match=r"an empty one 18\.5 us"):
        kernel_time(short.samples[1], short.samples[2])
    rows = [row_of("short", [short]), row("long", {"IREE default": 4e-4, TUNED: 2e-4})]
    assert TUNED not in rows[0].kernels.columns
    assert rows[0].kernels.against(["IREE default"]) is None
    assert rows[0].of_roofline(KERNELS) is None
    assert means_of(rows, CALLS)[0].endswith("(geometric mean; rows: 2, faster on 2, slower on 0)")
    assert means_of(rows, KERNELS)[:2] == [
        "kernel time, time relative to the best other: 0.50 (geometric mean; rows: 1, faster on 1, slower on 0)",
        "kernel time, not in the mean, as kernels cannot be told from calls: short",
    ]
    assert any(note.startswith("short: no kernel time of mlir-sched: a call takes 17.5 us") for note in notes_of(rows))


def test_noise_of_a_long_call_is_no_reason_to_miss_its_kernel_time() -> None:
    noisy = samples("A", [1e-3, 1.3e-3, 0.9e-3, 1.2e-3, 1.1e-3, 1e-3])
    assert kernel_time(noisy, empty_call()).interval.median == pytest.approx(1.05e-3 - IREE_CALL_S)


SEEDS = [{TUNED: 2e-4, "TVM": 6e-4}, {TUNED: 3e-4, "TVM": 3.5e-4}, {TUNED: 2.5e-4, "TVM": 4e-4}]


def test_of_three_seeds_the_medians_are_shown_with_least_and_most(capsys: pytest.CaptureFixture[str]) -> None:
    found = row_of("A", [session(*constant(times), seed=seed) for seed, times in enumerate(SEEDS)])
    own, other = found.calls.columns[TUNED], found.calls.columns["TVM"]
    assert (own.time_s, own.range_s) == (2.5e-4, (2e-4, 3e-4))
    assert (other.time_s, other.range_s) == (4e-4, (3.5e-4, 6e-4))
    against = found.calls.against(["TVM"])
    assert str(against) == "1.60 (1.17 to 3.00)"
    assert found.tuning == {TUNED: (Tuning(8, 3.0),) * 3}
    print_results([found], SETTING, PUBLISHING)
    printed = capsys.readouterr().out
    assert "8 in 3 s, 8 in 3 s, 8 in 3 s" in printed
    assert "200 to 300" in printed
    assert "3 seeds, each in a session of its own" in " ".join(notes_of([found]))


def test_a_row_that_one_bad_day_explains_is_marked() -> None:
    sessions = [session(*constant(times)) for times in [*SEEDS[:2], SEEDS[2] | {"TVM": 2.9e-4}]]
    against = row_of("A", sessions).calls.against(["TVM"])
    assert against is not None
    assert against.one_day
    assert str(against).endswith(" ~")
    assert "faster on 0, slower on 0" in means_of([row_of("A", sessions)], CALLS)[0]


def test_one_seed_says_that_it_is_one() -> None:
    assert any(note.startswith("one seed: ") for note in notes_of([row("A", {TUNED: 1e-3})]))


def test_the_plain_caller_of_iree_is_a_table_of_its_own() -> None:
    plain = (samples("IREE default", [7e-4] * 8, peer=PLAIN), samples(TUNED, [4e-4] * 8, peer=PLAIN))
    taken = (*constant({"IREE default": 5e-4, TUNED: 2e-4}), samples("TVM", [3e-4] * 8, peer="tvm"), *plain)
    empties = (empty_call(peer=PLAIN), empty_call(peer="tvm"))
    rows = [row_of("A", [session(*taken, *empties)])]
    assert views_of(rows) == [CALLS, KERNELS, PLAIN_CALLER]
    ratios = {name: str(rows[0].views[name].against(["TVM"])) for name in views_of(rows)}
    assert ratios == {
        CALLS: "1.50 (1.50 to 1.50)",
        KERNELS: "1.51 (1.51 to 1.51)",  # both 2 us less
        PLAIN_CALLER: "0.75 (0.75 to 0.75)",
    }
    assert [table.name for table in view_tables(rows, SETTING, PUBLISHING)] == [CALLS, KERNELS, PLAIN_CALLER, "tuning"]


def test_a_session_is_read_back_under_the_same_setting_only(tmp_path: Path) -> None:
    made, file = session(*constant(SEEDS[0]), seed=3, notes=("a note",)), tmp_path / "session.json"
    assert SESSION.read(file, {"rounds": 8}) is None
    SESSION.write(file, made, {"rounds": 8})
    assert SESSION.read(file, {"rounds": 8}) == made
    assert SESSION.read(file, {"rounds": 9}) is None


def test_roofline_takes_the_level_that_holds_the_data() -> None:
    assert ROOFLINE.seconds(1000, 1 << 15) == ((1 << 15) / 200e9, "L1")
    assert ROOFLINE.seconds(1000, 1 << 16) == ((1 << 16) / 100e9, "L2")
    assert ROOFLINE.seconds(10**9, 1 << 30) == ((1 << 30) / 20e9, "DRAM")
    assert ROOFLINE.seconds(10**9, 64) == (0.01, "FMA")
    assert converter().structure(json.loads(json.dumps(asdict(ROOFLINE))), Roofline) == ROOFLINE


def test_ceilings_fall_with_size_and_hold_for_what_is_a_little_larger() -> None:
    rates = {1 << 14: 200e9, 1 << 15: 150e9, 1 << 16: 100e9, 1 << 17: 120e9, 1 << 18: 30e9}
    levels = levels_of(rates, {"L1": 1 << 15, "L2": 1 << 17})
    assert [(level.name, level.size_bytes, level.bytes_per_s) for level in levels] == [
        ("L1", 1 << 14, 200e9),
        ("L1", 1 << 15, 200e9),
        ("L2", 1 << 16, 150e9),
        ("L2", 1 << 17, 120e9),
        ("DRAM", 1 << 18, 120e9),
        ("DRAM", 0, 30e9),
    ]


def test_every_ceiling_is_the_highest_of_the_sessions() -> None:
    other = Roofline((0,), 90e9, (Level("L1", 1 << 15, 210e9), Level("L2", 1 << 20, 90e9), Level("DRAM", 0, 21e9)))
    sessions = [session(*constant({TUNED: 1e-3})), replace(session(*constant({TUNED: 1e-3})), roofline=other)]
    both = row_of("A", sessions).roofline
    assert (both, both) == (highest([ROOFLINE, other]), highest([other, ROOFLINE]))
    assert (both.flops_per_s, [level.bytes_per_s for level in both.levels]) == (100e9, [210e9, 100e9, 21e9])


def test_a_row_above_the_roofline_is_reported_as_an_error_of_the_ceiling() -> None:
    rows = [row("A", {TUNED: 1.015e-4}), row("B", {TUNED: 2e-4})]  # 10 MFLOP in 0.1 ms are the peak
    assert rows[0].of_roofline(CALLS) == pytest.approx(0.985, abs=1e-3)
    notes = notes_of(rows)
    assert [note for note in notes if note.startswith("!")] == [
        "! A is at 100.5% of the roofline (kernel time): FMA was measured too low"
    ]


def test_report_names_the_best_peer_and_what_is_missing(tmp_path: Path) -> None:
    rows = [
        row("A", {"IREE default": 4e-4, "torch eager": 3e-4, TUNED: 2e-4}, ("tvm: not installed",)),
        row("B", {"IREE default": 4e-6, TUNED: 5e-6}, ("tvm: not installed", "torch: no equivalent is known")),
    ]
    assert rows[0].calls.best_peer == "torch eager"
    assert rows[0].of_roofline(CALLS) == pytest.approx(0.5)
    assert [len(table.rows) for table in view_tables(rows, SETTING, PUBLISHING)] == [2, 2, 2]
    notes = notes_of(rows)
    assert "tvm: not installed" in notes
    assert "torch: no equivalent is known (B)" in notes
    write_markdown(tmp_path / "all.md", rows, SETTING, PUBLISHING)
    lines = (tmp_path / "all.md").read_text().splitlines()
    assert lines[0] == "### Whole calls"
    assert lines[4].startswith("| A | 100 us, FMA | 400 us (400 to 400) | 300 us (300 to 300) | 200 us (200 to 200) |")
    assert "- tvm: not installed" in lines
    data = json.loads(json.dumps(rows[0].to_json()))
    assert data["views"][CALLS]["columns"]["torch eager"]["time_s"] == pytest.approx(3e-4)
    assert data["sessions"][0]["tuning"][TUNED] == {"trials": 8, "seconds": 3.0}


def test_means_are_over_the_rows_that_have_both() -> None:
    rows = [
        row(
            "A",
            {
                "IREE default": 8e-4,
                "IREE O3": 4e-4,
                "TVM": 2e-4,
                "torch eager": 6e-4,
                "torch compile": 5e-4,
                TUNED: 2e-4,
            },
            tuning={"TVM": Tuning(8, 12.0), "torch compile": Tuning(0, 20.0)},
        ),
        row("B", {"IREE default": 9e-4, "TVM": 8e-4, TUNED: 2e-4}),
        row("C", {"IREE default": 1e-4, TUNED: 2e-4}),
        row("D", {"IREE default": 1e-4}),
    ]
    assert means_of(rows, CALLS) == [
        "whole calls, time relative to the best other: 0.79 (geometric mean; rows: 3, faster on 1, slower on 1)",
        "whole calls, time relative to the best of IREE: 0.61 (geometric mean; rows: 3, faster on 2, slower on 1)",
        "whole calls, time relative to the better of PyTorch: 0.40 (geometric mean; rows: 1, faster on 1, slower on 0)",
        "whole calls, time relative to IREE default: 0.48 (geometric mean; rows: 3, faster on 2, slower on 1)",
        "whole calls, time relative to IREE O3: 0.50 (geometric mean; rows: 1, faster on 1, slower on 0)",
        "whole calls, time relative to torch eager: 0.33 (geometric mean; rows: 1, faster on 1, slower on 0)",
        "whole calls, time relative to torch compile: 0.40 (geometric mean; rows: 1, faster on 1, slower on 0)",
        "whole calls, time relative to TVM: 0.50 (geometric mean; rows: 2, faster on 1, slower on 0)",
    ]
    assert tuning_means_of(rows) == ["tuning time relative to TVM: 0.25 (geometric mean; rows: 1)"]


def test_rows_are_a_table_of_a_file() -> None:
    first = session(*constant({"IREE default": 3e-3, "TVM MetaSchedule": 2e-3, TUNED: 1e-3}), notes=("slow",))
    second = session(*constant({"IREE default": 3e-3, "TVM MetaSchedule": 4e-3, TUNED: 1.5e-3}), seed=1)
    rows = [row_of("A", [first, second]), row("B", {"IREE default": 1e-3, TUNED: 2e-3})]
    table = results_table(rows, SETTING, PUBLISHING)
    assert (table.threads, table.seeds, table.notes) == (1, (0, 1), ("A: slow",))
    assert table.name == "operators-1-threads-64-trials"
    assert table.versions["apache-tvm"] == "0.27.0.post1"
    titles = [column.title for column in table.columns]
    a, b = (dict(zip(titles, cells, strict=True)) for _, cells in table.rows)
    assert cell_text(a[TUNED], Unit.SECONDS) == "1.25 ms (1.00 to 1.50)"
    assert cell_text(a["best other over mlir-sched"], Unit.RATIO) == "2.40 (2.00 to 3.00), IREE default"
    assert b["TVM MetaSchedule"] is None
    assert list(conclusions(table)) == [
        "Geometric mean of *best other over mlir-sched*: 1.10, over 2 rows.",
        "**Slower**: B. **Faster**: A.",
    ]
