"""An arm becomes the default where the rule says so: on made-up searches whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.strategies.verdict import LAST, Compared, Gate, Pair, Verdict, compared, judged

FAMILIES = ("products", "convolutions", "softmax", "sums")
GATE = Gate({2: 0.9, LAST: 0.98})
EQUAL_NETWORKS = ((0.98, 1.01), (0.97, 1.03))


def pairs(
    truth: float, rng: np.random.Generator, *, tasks: int = 8, bad: Mapping[str, float] | None = None
) -> list[Pair]:
    """Return three seeds of each task around a true ratio; tasks differ by 5 %, seeds by 3 %."""
    found = []
    for number in range(tasks):
        family = FAMILIES[number % len(FAMILIES)]
        of_task = (bad or {}).get(family, truth) * np.exp(0.05 * rng.standard_normal())
        found += [
            Pair(f"task {number}", family, seed, float(of_task * np.exp(0.03 * rng.standard_normal())))
            for seed in range(3)
        ]
    return found


def after(truths: Mapping[int, float], *, bad: Mapping[str, float] | None = None, seed: int = 0) -> dict[int, Compared]:
    """Return the comparisons after some trials, given the true ratios; ``bad`` families have their own in the end."""
    rng = np.random.default_rng(seed)
    return {
        trials: compared(pairs(truth, rng, bad=bad if trials == LAST else None)) for trials, truth in truths.items()
    }


def test_a_better_arm_becomes_the_default() -> None:
    judgement = judged(after({2: 0.7, LAST: 0.9}), GATE, EQUAL_NETWORKS)
    assert (judgement.verdict, judgement.against) == (Verdict.DEFAULT, ())


def test_an_equal_arm_stays_an_option_even_where_the_gate_asks_for_little() -> None:
    for seed in range(20):
        judgement = judged(after({2: 1.0, LAST: 1.0}, seed=seed), Gate({2: 0.999}), EQUAL_NETWORKS)
        assert judgement.verdict is Verdict.OPTION
        assert judgement.against


def test_an_arm_that_is_worse_in_the_end_stays_an_option() -> None:
    judgement = judged(after({2: 0.7, LAST: 1.0}), Gate({2: 0.9}), EQUAL_NETWORKS)
    assert judgement.verdict is Verdict.OPTION
    assert judgement.against[0].startswith("it may be worse after 24 trials: its interval ends at 1.0")


def test_an_arm_that_is_bad_on_one_family_stays_an_option_that_says_which() -> None:
    found = after({2: 0.6, LAST: 0.8}, bad={"softmax": 1.15})
    judgement = judged(found, Gate({2: 0.9}), EQUAL_NETWORKS)
    assert found[LAST].high < 1
    assert judgement.verdict is Verdict.OPTION
    (against,) = judgement.against
    assert against.endswith(" on softmax after 24 trials")


def test_a_gate_that_is_missed_is_said_and_so_is_an_interval_that_reaches_one() -> None:
    found = {2: Compared(0.95, 0.88, 1.02, {"products": 0.95}, 8), LAST: Compared(0.9, 0.8, 0.99, {"products": 0.9}, 8)}
    assert judged(found, GATE, EQUAL_NETWORKS).against == (
        "0.95 after 2 trials, where the gate asks for 0.9",
        "it may be no better after 2 trials: its interval ends at 1.02",
    )


def test_a_default_needs_two_networks_of_which_none_is_slower() -> None:
    found = after({2: 0.7, LAST: 0.9})
    assert judged(found, GATE, EQUAL_NETWORKS[:1]).against == ("1 of 2 networks measured",)
    assert judged(found, GATE, ((0.9, 0.95), (1.01, 1.05))).against == ("a network is slower: 1.01 to 1.05",)


def test_nothing_becomes_the_default_without_a_gate_or_on_few_tasks() -> None:
    found = after({2: 0.7, LAST: 0.9})
    assert judged(found, Gate({}), EQUAL_NETWORKS).against == ("nothing was asked of it before",)
    few = {trials: replace(each, tasks=7) for trials, each in found.items()}
    assert judged(few, GATE, EQUAL_NETWORKS).against == ("7 of 8 tasks searched",)
    assert found[2].tasks == 8


def test_a_comparison_of_trials_that_are_missing_is_no_verdict() -> None:
    with pytest.raises(KeyError):
        judged(after({2: 0.7}), GATE, EQUAL_NETWORKS)


def test_intervals_cover_the_truth() -> None:
    rng = np.random.default_rng(1)
    found = [compared(pairs(0.9, rng)) for _ in range(200)]
    covered = sum(each.low <= 0.9 <= each.high for each in found)
    assert 0.85 <= covered / 200 <= 0.98
    assert compared(pairs(0.9, rng, tasks=32)).high < 0.93


def test_each_task_counts_as_one_whatever_its_seeds() -> None:
    found = [Pair("a", "products", seed, 0.5) for seed in range(9)] + [Pair("b", "softmax", 0, 2.0)]
    assert compared(found).ratio == pytest.approx(1.0)
    assert compared(found).families == pytest.approx({"products": 0.5, "softmax": 2.0})
    assert compared(found).worst_family[0] == "softmax"


def test_the_same_pairs_have_the_same_interval() -> None:
    made = pairs(0.9, np.random.default_rng(2))
    assert compared(made) == compared(list(made))


@pytest.mark.parametrize("ratio", [0.0, float("inf"), float("nan")])
def test_what_is_no_ratio_is_refused(ratio: float) -> None:
    with pytest.raises(ValueError, match="positive, finite ratios"):
        compared([Pair("a", "products", 0, ratio)])
    with pytest.raises(ValueError, match="positive, finite ratios"):
        compared([])


def test_a_gate_may_ask_for_fewer_trials_until_near_the_best() -> None:
    truths, gate = after({2: 0.7, LAST: 0.9}), Gate(trials=0.9)
    few, many = (compared(pairs(truth, np.random.default_rng(1))) for truth in (0.7, 1.0))
    assert judged(truths, gate, EQUAL_NETWORKS, few).verdict is Verdict.DEFAULT
    against = judged(truths, gate, EQUAL_NETWORKS, many).against
    assert [each.split(":")[0] for each in against] == [
        f"{many.ratio:.2f} of the trials until near the best, where the gate asks for 0.9",
        "it may save no trials",
    ]
    assert judged(truths, GATE, EQUAL_NETWORKS, many).verdict is Verdict.DEFAULT, "nobody asks for trials"
