"""The page of a run, of made results."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from made_result import ABLATION, DISPATCH, RESULT, alternative, timing

from mlir_sched.cli.tune import summary_lines
from mlir_sched.outcome import Timing, Verdict
from mlir_sched.tuned_folder.ablation_section import MEANING, ablation_section
from mlir_sched.tuned_folder.decision_worth import RelativeSpeed
from mlir_sched.tuned_folder.pictures import Curve, draw_dispatches, draw_program
from mlir_sched.tuned_folder.report import estimate_text, page
from mlir_sched.tuned_folder.result import PredictedVariants
from mlir_sched.tuned_folder.transferred import OneShotResult, SourceResult, TransferResult


def test_the_page_says_what_every_decision_is_worth() -> None:
    shown = ablation_section([DISPATCH])
    assert "the script was 2.20x as fast as the untuned code; measured again for the table above,\n2.00x" in shown
    assert (
        "<td>unroll 4</td><td>2: 1.12x the time (1.07 to 1.17), fastest of 5; 1 more changed: order</td>"
        "<td>8: 1.50x the time (1.45 to 1.55)</td>"
    ) in shown
    assert "<td>lanes 8</td><td>16: the same code, fastest of 3; nothing else changed</td><td>-</td>" in shown
    assert "<td>order columns</td><td>none tried</td>" in shown
    assert "<td>tail mask</td><td>the other decisions leave no other value</td>" in shown
    assert "<td>tile 8/4</td><td>2 tried, none valid</td>" in shown
    assert "<td>dot &lt;product&gt;</td><td>1.30x the time (1.25 to 1.35), fastest of 4</td><td>tile 8/2</td>" in shown
    assert "<td>cache</td><td>none tried</td>" in shown
    assert "<td>rows</td><td>1.40x the time (1.35 to 1.45), the only one</td><td>tile 4/2</td>" in shown
    assert shown in page(RESULT, b"")


def test_a_value_that_may_be_as_fast_is_said_to_be_so() -> None:
    unclear = replace(ABLATION.decisions[0], best=alternative(1.04, RelativeSpeed.UNCLEAR, unroll=2))
    shown = ablation_section([replace(DISPATCH, ablation=replace(ABLATION, decisions=(unclear,)))])
    assert "<td>2: may be as fast, 1.04x the time (0.99 to 1.09), fastest of 5; nothing else changed</td>" in shown


def test_further_changes_are_named_where_they_are_few() -> None:
    many = alternative(1.2, unroll=2, order="rows", lanes=4, tail="none", tile=(4, 2))
    worth = replace(ABLATION.decisions[0], best=many)
    shown = ablation_section([replace(DISPATCH, ablation=replace(ABLATION, decisions=(worth,)))])
    assert "fastest of 5; 4 more changed</td>" in shown


def test_without_scripts_nothing_is_said_of_why_they_won() -> None:
    assert ablation_section([replace(DISPATCH, ablation=None)]) == ""


def test_the_page_says_how_far_the_estimate_is_from_the_measurement() -> None:
    assert "ends at 450 us, which is 10.0% less than the emitted program takes, 500 us" in estimate_text(RESULT)
    slow = replace(RESULT, program=replace(RESULT.program, tuned=timing(4e-4)))
    assert "12.5% more than the emitted program takes, 400 us" in estimate_text(slow)
    bare = replace(RESULT, dispatches=(replace(DISPATCH, tuned=None),))
    assert "but the emitted program has no script" in estimate_text(bare)
    assert estimate_text(RESULT) in page(RESULT, b"")


def test_the_page_of_a_run_without_a_device_says_that_its_times_are_estimates() -> None:
    tuned = Timing.estimated(5e-4, 1e-3)
    result = replace(
        RESULT,
        dispatches=(replace(DISPATCH, tuned=tuned),),
        program=replace(RESULT.program, tuned=tuned, device="", verdict=Verdict.NOT_CHECKED),
        processor="NVIDIA H100 (sm_90)",
        measured=False,
    )
    shown = page(result, b"")
    assert "<b>NOT MEASURED</b>: nothing was run. Times are estimates for NVIDIA H100 (sm_90)" in shown
    assert "Whole program, est.: untuned 1 ms, tuned 500 us:\n<b>2.00x (estimated)</b>" in shown
    assert "8 estimated now" in shown
    assert "tuned, est.</th>" in shown
    assert "tuned, 500 us, est.</span>" in shown
    assert "measured" not in shown.replace(MEANING, "").lower().replace("not measured", "")
    assert "NOT MEASURED" not in page(RESULT, b"")


def test_a_run_without_estimates_has_one_picture() -> None:
    both, one = page(RESULT, b"png"), page(replace(RESULT, curves=()), b"png")
    assert (both.count("data:image/png;base64,"), one.count("data:image/png;base64,")) == (2, 1)


def test_the_page_says_how_well_the_cost_model_ordered_candidates() -> None:
    shown = "In 84% of the pairs of new candidates the cost model put the faster one first."
    assert shown in page(replace(RESULT, model_accuracy=0.84), b"")
    assert "the cost model" not in page(RESULT, b"")


def test_pictures_are_drawn_of_any_curve() -> None:
    single = replace(RESULT, curves=RESULT.curves[:1])
    dispatches = [Curve("d_0", (None, 2.0)), Curve("d_1", ())]
    pictures = [draw_program(RESULT), draw_program(single), draw_dispatches(dispatches)]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert pictures[0] != pictures[1]


def test_the_summary_holds_what_the_page_shows() -> None:
    data = json.loads(json.dumps(RESULT.to_json()))
    unroll = data["dispatches"][0]["ablation"]["decisions"][0]
    assert unroll["best"]["changes"] == {"unroll": 2, "order": "rows"}
    assert unroll["best"]["verdict"] == "slower"
    assert data["curves"][0]["estimates"][1] == {"run_s": 90.0, "trials": 8, "program_s": 4.5e-4}


def test_the_page_names_what_the_search_began_from() -> None:
    source = SourceResult("d<1>", "linalg.matmul 4x4x4", "your store", "a CPU", 2, 96)
    begun = TransferResult(3, 2, (source, replace(source, place="shipped")), 0.714, 2)
    shown = page(replace(RESULT, transfer=begun), b"")
    assert "2 of 3 dispatches begin from what 2 others showed (your store, shipped)" in shown
    assert "the model put the faster one first in 71% of the pairs" in shown
    reached = replace(begun, reach_error=1.21, reach_held=0.8, reach_judged=5)
    assert reached.words.endswith(
        "foreseen within a factor of 1.21 on average, and in 80% of them inside the 80 % interval"
    )
    assert "<td>d&lt;1&gt;</td><td>linalg.matmul 4x4x4</td><td>your store</td><td>a CPU</td>" in shown
    assert "begin from" not in page(RESULT, b"")
    nothing = replace(begun, with_sources=0, sources=(), accuracy=None)
    assert "none of 3 dispatches begins from what others showed" in nothing.words
    assert json.loads(json.dumps(replace(RESULT, transfer=begun).to_json()))["transfer"]["words"] == begun.words


def test_a_search_that_ended_early_says_why_everywhere() -> None:
    found = replace(RESULT, ended_early="nothing is <left>")
    assert "the search ended early: nothing is <left>" in summary_lines(found)
    assert "The search ended early: nothing is &lt;left&gt;." in page(found, b"")
    assert json.loads(json.dumps(found.to_json()))["ended_early"] == "nothing is <left>"
    assert found.is_whole, "the machine is not at fault"
    assert not any("early" in text for text in (*summary_lines(RESULT), page(RESULT, b"")))


def test_a_run_without_a_search_says_so_everywhere() -> None:
    chosen = OneShotResult(2, 1, {"templates": 2, "cost model": 4}, 0.5)
    words = (
        "no search: 6 candidates of 2 dispatches (templates: 2, cost model: 4), and those that the store had of 1 "
        "more; the cost model was ready in 500 ms"
    )
    found = replace(RESULT, one_shot=chosen)
    assert chosen.words == words
    assert words in summary_lines(found)
    assert f"<p>{words}.</p>" in page(found, b"")
    assert json.loads(json.dumps(found.to_json()))["one_shot"]["words"] == words
    assert RESULT.to_json()["one_shot"] is None
    assert "no search" not in page(RESULT, b"")


@pytest.mark.parametrize(
    ("order", "ratios", "words"),
    [
        (("r", "O3"), {"r": 1.5, "O3": 1.1}, "variants by prediction from 9 known programs: r, then O3"),
        ((), {"r": 0.5}, "variants by prediction from 9 known programs: none beside the default"),
        (("O3",), {"r": 0.5}, "variants by prediction from 9 known programs: O3 (not predicted: O3)"),
        (("r", "O3"), {}, "9 known programs say too little to predict a variant; by their rewrites: r, then O3"),
    ],
)
def test_what_variants_are_ordered_by_is_said_as_it_was(
    order: tuple[str, ...], ratios: dict[str, float], words: str
) -> None:
    found = replace(RESULT, predicted=PredictedVariants(9, order, ratios))
    assert words in summary_lines(found)
    assert f"<p>{words}.</p>" in page(found, b"")
    assert json.loads(json.dumps(found.to_json()))["predicted"]["words"] == words
