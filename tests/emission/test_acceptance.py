"""What is emitted is decided by intervals: scripts and flags only where they are worth it."""

from __future__ import annotations

import numpy as np
import pytest

from mlir_sched.emission.acceptance import is_disturbed, loses, plainest_of_fastest, why_no_gain
from mlir_sched.outcome import Timing
from mlir_sched.runner.statistics import median_interval

DEFAULT = (1.0, 1.0)


def ratio(low: float, high: float) -> Timing:
    return Timing(1e-3, 1e-3, 1e-3, 20, (low + high) / 2, low, high)


@pytest.mark.parametrize(
    ("untuned", "scripted", "emitted"),
    [
        ({"default": DEFAULT, "O3": (1.29, 1.31)}, (1.39, 1.41), None),
        ({"default": DEFAULT, "O3": (1.29, 1.31)}, (1.30, 1.32), "O3"),
        ({"default": DEFAULT, "O3": (1.20, 1.40)}, (1.38, 1.44), "O3"),
        ({"default": DEFAULT, "O3": (1.29, 1.31)}, None, "O3"),
        ({"default": DEFAULT, "O3": (1.00, 1.08)}, None, "default"),
        ({"default": DEFAULT, "O3": (0.99, 1.02)}, (1.022, 1.04), None),
        ({"default": DEFAULT, "O3": (0.99, 1.03)}, (1.022, 1.05), "default"),
        ({"default": DEFAULT}, (1.00, 1.05), "default"),
        ({"default": (0.9, 1.1), "O3": (1.05, 1.05)}, (1.2, 1.3), None),
        ({"default": (0.9, 1.1), "O3": (1.05, 1.05)}, (1.07, 1.09), "default"),
        ({"default": DEFAULT, "O3": (1.10, 1.14), "rewrite": (1.12, 1.16)}, None, "O3"),
        ({"default": DEFAULT, "O3": (1.10, 1.11), "rewrite": (1.12, 1.16)}, None, "rewrite"),
    ],
)
def test_flags_and_scripts_are_emitted_for_a_gain_that_is_certain(
    untuned: dict[str, tuple[float, float]], scripted: tuple[float, float] | None, emitted: str | None
) -> None:
    timings = {name: ratio(*interval) for name, interval in untuned.items()}
    assert plainest_of_fastest(timings, ratio(*scripted) if scripted else None) == emitted


def test_a_program_that_may_be_slower_is_a_loss() -> None:
    assert loses(ratio(0.97, 0.99))
    assert loses(ratio(0.98, 1.06))
    assert not loses(ratio(0.997, 1.01))


@pytest.mark.parametrize(
    ("scripted", "rival", "disturbed"),
    [
        ((0.9, 5.1), (0.99, 1.01), True),  # 3x by the median
        ((1.2, 4.8), (1.1, 1.3), True),
        ((2.9, 3.1), (0.99, 1.01), False),  # told apart
        ((1.0, 1.1), (0.99, 1.01), False),  # a small gain is no sign of a disturbance
        ((0.9, 5.1), (2.8, 3.0), False),
    ],
)
def test_a_session_is_disturbed_where_programs_far_apart_are_not_told_apart(
    scripted: tuple[float, float], rival: tuple[float, float], disturbed: bool
) -> None:
    assert is_disturbed(ratio(*scripted), {"default": ratio(*DEFAULT), "O3": ratio(*rival)}) == disturbed


def test_a_script_is_worth_it_when_its_whole_interval_is() -> None:
    assert not why_no_gain(ratio(1.02, 1.04))
    assert (
        why_no_gain(ratio(1.0, 1.08)) == "no gain: the best script is 1.04x (1.00 to 1.08) as fast as the untuned code"
    )
    assert why_no_gain(ratio(1.011, 1.013))


def test_variants_of_equal_code_seldom_replace_the_default() -> None:
    """Six variants, measured with 2 % noise: the best of their medians is above 1.01 far more often."""
    rng = np.random.default_rng(0)
    chosen = medians = 0
    for _ in range(500):
        intervals = [median_interval(rng.lognormal(0.0, 0.02, 8).tolist()) for _ in range(6)]
        timings = {f"v{i}": Timing(1, 1, 1, 8, v.median, v.low, v.high) for i, v in enumerate(intervals)}
        chosen += plainest_of_fastest({"default": ratio(*DEFAULT), **timings}, None) != "default"
        medians += max(v.median for v in intervals) >= 1.01
    assert chosen / 500 < 0.02
    assert medians / 500 > 0.3
