"""Of a program of seconds per call, what counts is compiled, and nothing is timed twice."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from counted_programs import Counted
from fixed_targets import FIXED

from mlir_sched.database import RecordStore
from mlir_sched.program import rewrites
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import Variant
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.compile_policy import NO_TIME_TO_COMPILE, CompilePolicy
from mlir_sched.program.variants.early_decisions import DOMINATED, LAYOUT
from mlir_sched.program.variants.programs import Source
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.variant_choice import VariantChoice

CALL_S, BUILD_S = 1.9, 20.0
SECONDS: Mapping[str, float] = {"default": CALL_S, LAYOUT: CALL_S / 4}


@pytest.fixture
def programs(tmp_path: Path) -> Counted:
    model = tmp_path / "model.mlir"
    model.write_text("module {}")
    layout = Variant(Plan(rewrites.LAYOUT))
    return Counted(Source(model, FIXED), SECONDS, [layout], BUILD_S)


def test_the_layout_that_the_profile_speaks_for_is_compiled_although_the_default_took_long(
    programs: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlir_sched.program.variants.early_decisions.channels_first_share", lambda _: 0.7)
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        begun = time.monotonic() - 50.0
        choice = VariantChoice.of(programs.source.path, FIXED, TuneOptions(minutes=2.0), store, begun)
        variants = build_variants(programs, choice)
    assert programs.compiled == ["default", LAYOUT]
    assert programs.timed == [("default", LAYOUT)]
    assert variants.dominant == (LAYOUT,)
    assert set(variants.left_out.values()) == {DOMINATED.format(LAYOUT)}


class OnlyLayout(CompilePolicy):
    """Compiles no other variant than the layout, which settles nothing."""

    def should_compile(self, name: str) -> bool:
        return name == LAYOUT

    def dominates(self, name: str, *, far_faster: bool) -> bool:
        del name, far_faster
        return False


def test_a_variant_beside_which_nothing_was_compiled_is_not_timed_again(programs: Counted) -> None:
    variants = build_variants(programs, OnlyLayout())
    assert [built.variant.name for built in variants.built] == ["default", LAYOUT]
    assert programs.timed == [("default", LAYOUT)]
    assert set(variants.left_out.values()) == {NO_TIME_TO_COMPILE}
