"""Every variant of a network is compiled and timed beside the default."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from counted_programs import Counted
from fixed_targets import FIXED

from benchmarks.networks.variants import measuring
from mlir_sched.errors import UserError
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import cpu_rewrites
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.profile_features import FEATURES
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.targets.kind import DATA_TILING

CONTIGUOUS = "contiguous_filters"
REWRITTEN = [Variant(plan) for plan in map(Plan, cpu_rewrites(1)) if plan.name in (LAYOUT, CONTIGUOUS)]


class Unprofiled(Counted):
    """Programs of which IREE records nothing."""

    def profiled_first(self, built: BuiltVariant) -> BuiltVariant:
        return built


def counted(monkeypatch: pytest.MonkeyPatch, kind: type[Counted] = Counted) -> Counted:
    """Have programs of given seconds measured."""
    seconds = {"default": 1.0, DATA_TILING: 2.0, LAYOUT: 0.25}
    programs = kind(Source(Path("model.mlir"), FIXED), seconds, REWRITTEN)
    monkeypatch.setattr(MeasuredPrograms, "open", lambda *_: nullcontext(programs))
    return programs


def test_each_variant_is_timed_beside_the_default_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    programs = counted(monkeypatch)
    found = measuring.measured("a network", 2, tmp_path, FIXED)
    variants = {each.name: each for each in found.variants}
    assert programs.timed == [("default", DATA_TILING), ("default", LAYOUT)]
    assert (variants[DATA_TILING].ratio, variants[LAYOUT].ratio) == (0.5, 4.0)
    assert variants[LAYOUT].compiles
    failed = variants[CONTIGUOUS]
    assert (failed.ratio, failed.why, failed.compiles) == (None, "it does not compile", False)
    assert (found.network, found.part, found.call_s, set(found.features)) == ("a network", 2, 1.0, set(FEATURES))


def test_a_network_without_a_profile_costs_an_error_and_not_the_collection(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    counted(monkeypatch, Unprofiled)
    with pytest.raises(UserError, match="IREE records no profile of it"):
        measuring.measured("a network", 1, tmp_path, FIXED)
