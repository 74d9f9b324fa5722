"""Reasons are one short line, whatever the compiler says."""

from __future__ import annotations

import pytest

from mlir_sched.compiler.reasons import LENGTH, reason

LAYOUT = "#iree_encoding.layout<[#iree_cpu.cpu_encoding_resolver<configuration = {inner = [0], outer = [1]}>]>"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("model.mlir:3:5: error: 'linalg.matmul' op is odd\nnote: see here", "'linalg.matmul' op is odd"),
        (f"it updates a tensor in place that it returns as tensor<4x4xf32, {LAYOUT}>", None),
        ("it takes " + "a very long list, " * 20, None),
        ("Traceback (most recent call last):\n  File x\nKeyError: 'a'", "internal error: KeyError: 'a'"),
        (
            'Failed to apply.\nDiagnostic message at loc(callsite("m":6:1 at "m":1:1)): \'x\' is bad\nat loc("m"): no',
            "'x' is bad",
        ),
        ("", "no reason given"),
    ],
)
def test_a_reason_is_the_cause_alone(message: str, expected: str | None) -> None:
    found = reason(message)
    assert expected is None or found == expected
    assert len(found) <= LENGTH
    assert "\n" not in found


def test_long_attributes_are_left_out() -> None:
    assert reason(f"it returns tensor<4x4xf32, {LAYOUT}> and more") == "it returns tensor<...> and more"
