"""Predictions of variants are judged on networks that they were not made from."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest
from fixed_targets import FIXED

from benchmarks.figures.publishing import Publishing
from benchmarks.figures.result_table import Machine, MachineResults
from benchmarks.networks import sizes
from benchmarks.networks.variants import command
from benchmarks.networks.variants.judging import Judged, judged, plans_on, results_table, today, verdict
from benchmarks.networks.variants.measuring import MeasuredNetwork, MeasuredVariant
from benchmarks.pages.strategies import NOT_YET, OPTION, PREDICTED, part
from benchmarks.strategies.verdict import Verdict
from mlir_sched.errors import UserError
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.profile_features import FEATURES

PUBLISHING = Publishing(None, ("One machine.",), "command")
REFINED, CONTIGUOUS = f"{LAYOUT}+packed_weights", "contiguous_filters"
SHARE = "share of channels first"


def network(name: str, part: int, share: float) -> MeasuredNetwork:
    """Return a network whose layout pays where its channels come first."""
    ratio = 4.0 if share > 0.5 else 0.5
    variants = (
        MeasuredVariant("O3", 2.0, 1.0, 0.7),
        MeasuredVariant(LAYOUT, 3.0, 1.0, ratio),
        MeasuredVariant(REFINED, 4.0, 1.0, 0.1),
        MeasuredVariant(CONTIGUOUS, 5.0, why="it does not compile"),
    )
    return MeasuredNetwork(name, part, {**dict.fromkeys(FEATURES, 0.0), SHARE: share}, 1e-3, 2.0, variants)


NETWORKS = [network(f"network {n}", part, n / 100 + (0.8 if n > 5 else 0.1)) for n in range(12) for part in (1, 2)]


def test_each_network_is_predicted_from_the_others() -> None:
    found = judged(NETWORKS, plans_on(FIXED))
    assert [each.hits for each in found] == [True] * 24
    last, first = found[-1], found[0]
    assert (last.best, last.taken, last.seconds, last.today_s) == (LAYOUT, (REFINED,), 5.0, 9.0)
    assert (first.best, first.taken, first.seconds) == ("default", (), 0.0), "what does not compile is known"
    assert first.today_s == 17.0, "all variants are compiled where none dominates"


def test_what_does_not_compile_takes_time_where_others_do_not_have_it() -> None:
    others = [replace(each, variants=each.variants[:3]) for each in NETWORKS]
    own = judged([*others, network("own", 1, 0.0)], plans_on(FIXED))[-1]
    assert (own.best, own.taken, own.seconds) == ("default", (), 5.0)


def test_a_network_unlike_all_others_is_missed() -> None:
    unlike = replace(network("unlike", 1, 0.0), variants=network("", 1, 1.0).variants)
    found = judged([*NETWORKS, unlike], plans_on(FIXED))
    assert [each.network for each in found if not each.hits] == ["unlike"]


@pytest.mark.parametrize(("timing_s", "taken"), [(1.0, ("O3",)), (0.0, ("O3", "data-tiling"))])
def test_what_compiles_and_is_wrong_takes_the_place_of_another_as_in_a_run(
    timing_s: float, taken: tuple[str, ...]
) -> None:
    right = MeasuredVariant(CONTIGUOUS, 2.0, 1.0, 1.2)
    others = MeasuredVariant("O3", 2.0, 1.0, 1.1), MeasuredVariant("data-tiling", 2.0, 1.0, 1.05)
    networks = [replace(network(f"{n}", 1, 0.1), variants=(right, *others)) for n in range(8)]
    wrong = MeasuredVariant(CONTIGUOUS, 2.0, timing_s, why="its numbers are wrong")
    own = replace(networks[0], network="own", variants=(wrong, *others))
    assert judged([*networks, own], plans_on(FIXED))[-1].taken == taken


@pytest.mark.parametrize(("ratio", "share", "dominates"), [(1.5, 0.2, False), (2.5, 0.2, True), (1.5, 0.4, True)])
def test_without_predictions_only_refinements_follow_a_layout_that_dominates(
    ratio: float, share: float, dominates: bool
) -> None:
    own = network("a", 1, share)
    own = replace(own, variants=tuple(replace(v, ratio=ratio) if v.name == LAYOUT else v for v in own.variants))
    plans = [plans_on(FIXED)[each.name] for each in own.variants]
    expected = [LAYOUT, REFINED] if dominates else [LAYOUT, "O3", REFINED, CONTIGUOUS]
    assert today(own, plans) == expected


def made(hits: int, seconds: float, networks: int = 12) -> list[Judged]:
    return [Judged(str(n), part, "a", ("a",), n < hits, seconds, 10.0) for n in range(networks) for part in (1, 2)]


@pytest.mark.parametrize(
    ("found", "against"),
    [(made(11, 6.0), 1), (made(10, 6.0), 2), (made(12, 6.1), 2), (made(12, 1.0, networks=11), 2), (made(9, 9.0), 3)],
)
def test_the_gate_asks_for_hits_and_seconds(found: list[Judged], against: int) -> None:
    judgement, reasons = verdict(found)
    assert judgement is Verdict.OPTION, "whole runs are not compared"
    assert len(reasons) == against


def test_a_network_with_a_miss_on_one_size_is_missed() -> None:
    found = made(12, 1.0)
    assert len(verdict([replace(found[0], hits=False), *found[1:]])[1]) == 1
    assert len(verdict([replace(found[0], hits=False), found[1], replace(found[2], hits=False), *found[3:]])[1]) == 2


def test_the_page_has_the_verdict_and_the_table() -> None:
    results = {
        "here": MachineResults(
            Machine("a machine", "a processor", (), 2), (results_table(made(12, 5.0), 1, PUBLISHING),)
        )
    }
    (row,) = [line for line in part(results, "systems").splitlines() if PREDICTED in line]
    assert OPTION in row
    assert row.endswith("| option |")
    assert NOT_YET not in row
    assert "| all |" in part(results, "variants")


def test_what_is_measured_is_kept_at_once_and_not_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[tuple[str, int]]()

    def measured(name: str, part: int, folder: Path, target: object) -> MeasuredNetwork:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append((name, part))
        return network(name, part, 0.5)

    monkeypatch.setattr(command, "measured", measured)
    monkeypatch.setattr(command, "export", lambda name, folder, engines, *, part: None)
    names, file = list(sizes.SHORTER)[:2], tmp_path / "found" / "here.json"
    asked = argparse.Namespace(networks=names, parts=[1, 4], minutes=60.0, keep=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        command.collect(asked, file, FIXED)
    assert [(each.network, each.part) for each in command.known_networks(file, FIXED)] == done
    del done[:1]
    assert command.collect(asked, file, FIXED) == 0
    assert done[-1] == (names[1], 4)
    assert [each.part for each in command.known_networks(file, FIXED)] == [1, 4, 1, 4]
    assert command.collect(asked, file, FIXED) == 0, "all is there"
    with pytest.raises(UserError, match="measured elsewhere"):
        command.known_networks(file, replace(FIXED, compiler="9.9"))
    with pytest.raises(UserError, match="no inputs of several sizes"):
        command.collect(argparse.Namespace(**vars(asked) | {"networks": ["vit"]}), file, FIXED)
