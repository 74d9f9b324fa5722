"""What a result says of loading the program."""

from __future__ import annotations

from dataclasses import replace

import pytest
from made_result import LOADING, RESULT, WHOLE

from mlir_sched.cli.tune import loading_lines, summary_lines, weights_lines
from mlir_sched.outcome import LoadCost
from mlir_sched.tuned_folder.report import page
from mlir_sched.tuned_folder.result import Loading, Weights

WORDS = (
    "loads in 1.2 s (untuned 300 ms), with 190.0 MiB of memory at most (untuned 100.0 MiB), "
    "and needs 95.0 MiB then (untuned 90.0 MiB)"
)
UNTUNED = LoadCost(1.0, 2**30, 2**30)
MORE = 2**28
"""Bytes that are more than a fifth of those above."""


def test_loading_is_told_where_it_takes_far_more() -> None:
    assert WORDS in summary_lines(WHOLE)
    assert WORDS not in summary_lines(RESULT)
    assert loading_lines(replace(LOADING, tuned=LOADING.untuned), "") == []


def test_weights_in_files_can_be_computed_ahead_of_loading() -> None:
    assert loading_lines(LOADING, "") == [WORDS]
    command = (
        "mlir-sched compile model.mlir --tuned 'my folder' --parameters model=weights.irpa --parameters other.irpa "
        "--encode model=model.encoded.irpa --encode =weights.encoded.irpa"
    )
    advice = f"to compute weights ahead of that: {command}"
    assert loading_lines(LOADING, command) == [WORDS, advice]
    result = replace(WHOLE, output="my folder", parameters=("model=weights.irpa", "other.irpa"))
    assert {WORDS, advice} < {*summary_lines(result)}
    assert not any("compile" in line for line in summary_lines(WHOLE) if "ahead" in line)


def test_weights_that_need_far_more_memory_are_told_with_the_bound_that_avoids_them() -> None:
    large = Weights(100 * 2**20, 125 * 2**20)
    line = (
        "its calls read 125.0 MiB of weights (untuned 100.0 MiB); "
        "a run with --max-weights 1.2 leaves out what needs over 1.2 times the memory"
    )
    assert weights_lines(large) == [line]
    assert line in summary_lines(replace(RESULT, program=replace(RESULT.program, weights=large)))
    for small in (None, Weights(100 * 2**20, 119 * 2**20), Weights(2**20, 2**23)):
        assert weights_lines(small) == []


def test_the_page_tells_what_is_known_of_loading() -> None:
    assert f"The program {WORDS}." in page(WHOLE, b"")
    assert "loads in" not in page(RESULT, b"")


@pytest.mark.parametrize(
    ("tuned", "costs_more"),
    [
        (UNTUNED, False),
        (replace(UNTUNED, seconds=1.4), False),
        (replace(UNTUNED, seconds=1.6), True),
        (replace(UNTUNED, peak_bytes=UNTUNED.peak_bytes + MORE), True),
        (replace(UNTUNED, resident_bytes=UNTUNED.resident_bytes + MORE), True),
        (replace(UNTUNED, resident_bytes=UNTUNED.resident_bytes + MORE // 2), False),
        (LoadCost(0.0, 0, 0), False),
    ],
)
def test_what_is_far_more(tuned: LoadCost, costs_more: bool) -> None:
    assert Loading(UNTUNED, tuned).costs_more == costs_more


def test_a_few_pages_more_are_not_told_of() -> None:
    assert not Loading(LoadCost(1e-3, 2**20, 2**20), LoadCost(3e-3, 2**22, 2**22)).costs_more
