"""Random programs: what is generated, and which differences of results are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from fuzzed_programs import product_of, results_of
from hypothesis import given, settings
from hypothesis import strategies as st
from iree.compiler import ir

from benchmarks.fuzz.comparison import SAMPLES, WIDENING, Expected, difference
from benchmarks.fuzz.draft import DTYPES, Array, Draft
from benchmarks.fuzz.elementwise import quantised
from benchmarks.fuzz.programs import MOST, RandomProgram, finished, random_program

SEEDS = st.integers(min_value=0, max_value=2**63 - 1)


@settings(max_examples=60, deadline=None)
@given(SEEDS)
def test_every_seed_gives_a_valid_program_of_finite_values(seed: int) -> None:
    program = random_program(seed)
    with ir.Context(), ir.Location.unknown():
        assert ir.Module.parse(program.text).operation.verify()
    assert 1 <= len(program.steps) <= 2 * MOST, "each operation may be joined with another value"
    assert all(np.isfinite(array.astype(np.float64)).all() for array in program.evaluate())


@settings(max_examples=20, deadline=None)
@given(SEEDS)
def test_a_seed_always_gives_the_same_program_and_numpy_agrees_with_itself(seed: int) -> None:
    program = random_program(seed)
    assert random_program(seed).text == program.text
    assert difference(program, results_of(program)) == ""


def test_seeds_cover_every_type_and_several_results() -> None:
    programs = [random_program(seed) for seed in range(300)]
    read = {value.kind for program in programs for step in program.steps for value in (step.value, *step.read)}
    assert read == set(DTYPES)
    assert {len(program.outputs) for program in programs} == {1, 2, 3}


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "i8"])
def test_one_wrong_element_is_found(kind: str) -> None:
    program = product_of(kind)
    (result,) = results_of(program)
    scale = np.sqrt(np.mean(result.astype(np.float64) ** 2))
    result[4, 0] += result.dtype.type(1 if kind == "i8" else scale / 4)
    assert "1 of" in difference(program, [result])


def test_sums_in_another_order_are_right() -> None:
    program = product_of("f32")
    left, right = program.arrays
    right = right if right.shape[0] == left.shape[1] else right.T
    backwards = np.zeros((left.shape[0], right.shape[1]), np.float32)
    for k in reversed(range(left.shape[1])):
        backwards += left[:, k : k + 1] * right[k : k + 1]
    assert (backwards != results_of(program)[0]).any()
    assert difference(program, [backwards]) == ""


def test_errors_are_drawn_as_long_as_they_may_explain_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    program, evaluate, drawn = product_of("f32"), RandomProgram.evaluate, list[float]()

    def noted(self: RandomProgram, noise: np.random.Generator | None = None, factor: float = 1.0) -> list[Array]:
        drawn.extend([factor] if noise is not None else [])
        return evaluate(self, noise, factor)

    (right,) = program.evaluate()
    samples = [program.evaluate(np.random.default_rng(seed), WIDENING)[0] for seed in range(SAMPLES)]
    explained = WIDENING * np.max(np.abs(np.array(samples) - right), axis=0)
    monkeypatch.setattr(RandomProgram, "evaluate", noted)
    expected = Expected(program)
    assert expected.difference(results_of(program)) == ""
    assert drawn == [], "what is equal needs no explanation"
    assert expected.difference([(right + explained).astype(np.float32)]) == ""
    assert expected.difference([(right + 2 * explained).astype(np.float32)]) != ""
    assert drawn == [WIDENING] * SAMPLES
    assert expected.difference(results_of(program)) == ""


def test_a_byte_may_be_off_by_one_only_near_a_tie() -> None:
    draft = Draft(np.random.default_rng(0), whole=False)
    value = draft.argument(4)
    bytes_ = quantised(draft, value)
    assert bytes_ is not None
    scaled = np.array([2.5, 2.5000001, 2.4, 3.0], np.float32) / np.float32(8)
    program = replace(finished(draft, [bytes_]), arrays=(scaled,))
    right = program.evaluate()[0].astype(np.int8)
    assert difference(program, [right + np.array([1, -1, 0, 0], np.int8)]) == ""
    for place in (2, 3):
        off = right.copy()
        off[place] += 1
        assert "1 of 4 elements of i8" in difference(program, [off])
