from pathlib import Path

import numpy as np
import pytest

from benchmarks.search.enumeration import enumerate_traces
from benchmarks.search.measured_space import FORMAT, MeasuredPoint, MeasuredSpace, read_measured, write_measured
from mlir_sched.errors import IllegalTraceError, UserError
from mlir_sched.search import RandomSearch
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace

SPACE = SyntheticMatmulSpace(4, 4, 2)
POINTS = [
    MeasuredPoint(trace, tuple(SPACE.features([trace])[0].tolist()), SPACE.seconds(trace) if row % 7 else None)
    for sketch in ("rows", "packed")
    for row, trace in enumerate(enumerate_traces(SPACE, sketch))
]


@pytest.fixture(scope="module")
def table() -> MeasuredSpace:
    return MeasuredSpace("example", POINTS)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_a_file_gives_the_space_back(name: str, tmp_path: Path) -> None:
    write_measured(tmp_path / name, "example", POINTS)
    again = read_measured(tmp_path / name)
    assert again.task == "example"
    assert again.points == tuple(POINTS)


def test_everything_stays_inside_the_table(table: MeasuredSpace) -> None:
    rng = np.random.default_rng(0)
    known = {point.trace.key: point for point in POINTS}
    for sketch in (None, "rows", "packed"):
        for _ in range(100):
            trace = table.sample(rng, sketch)
            assert sketch in (None, trace.sketch)
            assert table.repaired(trace) is table.repaired(trace)
            assert table.seconds(trace) == known[trace.key].seconds
            assert table.features([trace])[0].tolist() == pytest.approx(known[trace.key].features)


def test_a_changed_decision_may_bring_or_drop_other_variables(table: MeasuredSpace) -> None:
    for point in POINTS[-500:]:
        changed = point.trace.with_value("pack", "lhs" if point.trace.values["pack"] == "rhs" else "rhs")
        repaired = table.repaired(changed)
        assert repaired.values["pack"] == changed.values["pack"]
        assert all(repaired.values[name] == value for name, value in changed.values.items() if name != "pack_width")
        assert ("pack_width" in repaired.values) == (changed.values["pack"] == "rhs")


def test_what_is_not_in_the_table_is_illegal() -> None:
    table = MeasuredSpace("one", POINTS[:1])
    with pytest.raises(IllegalTraceError, match="no measured candidate"):
        table.repaired(POINTS[1].trace)
    with pytest.raises(IllegalTraceError, match="sketch"):
        table.sample(np.random.default_rng(0), "packed")


def test_a_search_of_a_table_finds_every_point_once() -> None:
    points = POINTS[:60]
    search = RandomSearch(MeasuredSpace("few", points), np.random.default_rng(0))
    found: list[str] = []
    while traces := search.suggest(16):
        found += [trace.key for trace in traces]
    assert sorted(found) == sorted(point.trace.key for point in points)


def test_the_best_ignores_failures(table: MeasuredSpace) -> None:
    assert table.best_s == min(point.seconds for point in POINTS if point.seconds is not None)


@pytest.mark.parametrize("points", [[], POINTS[:1] * 2])
def test_no_points_or_equal_points_are_refused(points: list[MeasuredPoint]) -> None:
    with pytest.raises(ValueError, match="distinct"):
        MeasuredSpace("wrong", points)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "header"),
        ("{}\n", "header"),
        ("not json\n", ":1 is not JSON"),
        (f'{{"format": "{FORMAT}", "task": "a"}}\n', "distinct"),
        (f'{{"format": "{FORMAT}", "task": "a"}}\n{{"trace": 5}}\n', ":2 is not a measured candidate"),
        (f'{{"format": "{FORMAT}", "task": "a"}}\n{{"tra', ":2 is not JSON"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(UserError, match=message):
        read_measured(tmp_path / "a.jsonl")
