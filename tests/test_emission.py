"""What is emitted: scripts only where they are worth it."""

from __future__ import annotations

import pytest

from mlir_sched.emission.export import plainest_of_fastest


@pytest.mark.parametrize(
    ("untuned", "scripted", "emitted"),
    [
        ({"default": 1.0, "O3": 1.3}, 1.4, None),
        ({"default": 1.0, "O3": 1.3}, 1.305, "O3"),
        ({"default": 1.0, "O3": 1.3}, None, "O3"),
        ({"default": 1.0, "O3": 1.005}, None, "default"),
        ({"default": 1.0, "O3": 1.005}, 1.012, None),
        ({"default": 1.0}, 1.004, "default"),
    ],
)
def test_flags_and_scripts_are_emitted_for_a_gain_only(
    untuned: dict[str, float], scripted: float | None, emitted: str | None
) -> None:
    assert plainest_of_fastest(untuned, scripted) == emitted
