"""A variant of which IREE does not compile single sites competes without these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from fixed_targets import FIXED
from padded_images import convolved_and_transformed
from rewriting import write

from mlir_sched.database import RecordStore
from mlir_sched.program.building import Attempt
from mlir_sched.program.halving import most_tries
from mlir_sched.program.plan import Flags, KeptSite, Plan
from mlir_sched.program.program_space import KEPT, VARIANT, kept_decision
from mlir_sched.program.rewrites.layout.channels_last import ChannelsLast
from mlir_sched.program.rewrites.pipeline import StagedSite
from mlir_sched.program.rewrites.products.packed import PackedWeights
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.choosing import build_variants
from mlir_sched.program.variants.compile_policy import CompilePolicy
from mlir_sched.program.variants.mending import Mending, last_first, named_in
from mlir_sched.program.variants.programs import MeasuredPrograms, Source
from mlir_sched.program.variants.rewritten import decided_variant
from mlir_sched.runner import RacingOptions, RunnerOptions
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.variant_choice import VariantChoice

FUSED = "fused-padding"
PACKED = Variant(Plan((PackedWeights(),)))
ERROR = "model.mlir:7:3: error: failed to run translation of source executable to target executable\n"


def staged(number: int, location: str = "") -> StagedSite:
    return StagedSite("packed_weights", f"{number}x64", f"compute_packed_weights_{number}", (location,))


SITES = [staged(number, f'loc("/a/model.mlir":{number}:3)') for number in range(16)]


@dataclass
class Compiler:
    """Compiles a plan unless one of the sites at fault is changed."""

    faults: Sequence[KeptSite]
    says: str = ""
    tried: int = 0

    def __call__(self, plan: Plan) -> Attempt:
        self.tried += 1
        if left := [site for site in self.faults if site not in plan.kept]:
            return Attempt(None, "no", diagnostics=self.says.format(left[0].place.partition("x")[0]))
        return Attempt(BuiltVariant(Variant(plan), Model("", (), (), ()), b"", None, ()))


def kept(number: int) -> KeptSite:
    return KeptSite("packed_weights", f"{number}x64")


def mended(compiler: Compiler, diagnostics: str = "", has_time: Callable[[], bool] = lambda: True) -> list[KeptSite]:
    """Return what stays as it was; nothing where the variant is lost."""
    found = Mending(PACKED, lambda _: SITES, compiler, has_time).mended(diagnostics)
    return [] if found is None else list(found.variant.plan.kept)


def test_a_site_that_the_diagnostics_name_costs_one_compilation() -> None:
    compiler = Compiler([kept(7)])
    assert mended(compiler, ERROR) == [kept(7)]
    assert compiler.tried == 1


@pytest.mark.parametrize("fault", range(16))
def test_a_site_that_nothing_names_is_found_by_halving(fault: int) -> None:
    compiler = Compiler([kept(fault)])
    assert mended(compiler) == [kept(fault)]
    assert compiler.tried <= most_tries(16)


def test_a_site_that_is_named_without_being_at_fault_changes_as_all_others() -> None:
    named_wrongly = Compiler([kept(3)])
    assert mended(named_wrongly, ERROR) == [kept(3)]
    two_named = Compiler([kept(7)])
    assert mended(two_named, ERROR + "model.mlir:9:3: note: called from\n") == [kept(7)]


def test_sites_that_the_compiler_names_one_after_the_other_are_all_found() -> None:
    faults = [kept(number) for number in (13, 7, 5, 2)]
    compiler = Compiler(faults, "model.mlir:{}:3: error: no\n")
    assert mended(compiler, ERROR) == faults
    assert compiler.tried <= most_tries(16) + 1


def test_a_variant_is_lost_where_no_site_is_at_fault_or_no_time_is_left() -> None:
    assert mended(Compiler([KeptSite("another", "1x1")])) == []
    compiler = Compiler([kept(7)])
    assert mended(compiler, ERROR, has_time=lambda: False) == []
    assert compiler.tried == 0


def test_the_time_may_end_before_all_sites_were_tried() -> None:
    compiler, calls = Compiler([kept(7)]), iter(range(99))
    stays = mended(compiler, has_time=lambda: next(calls) < 2)
    assert kept(7) in stays
    assert 1 < len(stays) < 16


LIBRARY = """module attributes {transform.with_named_sequence} {
  util.func private @compute_packed_weights_2(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    %0 = tensor.empty() : tensor<4xf32>
    util.return %0 : tensor<4xf32>
  }
}"""


def test_diagnostics_name_sites_by_the_source_and_by_the_library() -> None:
    assert named_in("/b/model.mlir:4:3: error: x\n", SITES, LIBRARY) == (kept(4),)
    assert named_in("/tmp/library.mlir:3:8: error: x\n", SITES, LIBRARY) == (kept(2),)
    assert named_in("/b/model.mlir:4:9: error: x\nLLVM ERROR: out of memory\n", SITES, LIBRARY) == ()


def test_what_a_flag_changes_is_tried_after_the_sites_of_rewrites() -> None:
    padding = StagedSite("padding", "8x8", "", ())
    assert last_first([staged(1), padding, staged(2)]) == [staged(2), staged(1), padding]


class Only(CompilePolicy):
    """A policy of some variants."""

    def __init__(self, *wanted: str) -> None:
        self.wanted = wanted

    def should_compile(self, name: str) -> bool:
        return name in self.wanted


@pytest.mark.promise
def test_padding_that_iree_cannot_fuse_stays_as_it_was_and_the_rest_is_fused(tmp_path: Path, here: Target) -> None:
    model = write(tmp_path, convolved_and_transformed())
    with MeasuredPrograms.open(
        Source(model, here), RunnerOptions(racing=RacingOptions(budget_s=0.02, min_pairs=2))
    ) as times:
        variants = build_variants(times, Only(FUSED), local_sync=False)
    assert [built.variant.name for built in variants.built] == ["default", f"{FUSED} except for padding(1x18x18x8)"]
    built = variants.built[1]
    assert built.timing is not None, variants.left_out
    why = variants.left_out[FUSED]
    assert why.startswith("it competes except for padding(1x18x18x8): IREE does not compile it: ")
    values = variants.space.trace_of(built.variant.plan).values
    assert values == {VARIANT: FUSED, kept_decision(KeptSite("padding", "1x18x18x8")): KEPT}
    assert decided_variant(model, here, values) == built.variant, "a replay finds the same program"


def test_a_run_that_goes_on_leaves_the_same_sites_as_they_were(tmp_path: Path) -> None:
    model = write(tmp_path, "module {}")
    with RecordStore.open(tmp_path / "records.sqlite") as store:
        first, again = (VariantChoice.of(model, FIXED, TuneOptions(minutes=1), store, 0.0) for _ in range(2))
        assert first.left_as_they_were(FUSED, lambda: [["padding", "8x8"]]) == [["padding", "8x8"]]
        assert again.left_as_they_were(FUSED, pytest.fail) == [["padding", "8x8"]]
        assert not first.has_time_again(), "its minutes are over"


def test_the_rest_of_a_plan_that_keeps_sites_is_the_plan_itself() -> None:
    plan = Plan((ChannelsLast(), PackedWeights())).keeping([kept(1), kept(2)])
    assert plan.name == "channels_last+packed_weights except for packed_weights(1x64), packed_weights(2x64)"
    assert plan.whole == Plan((ChannelsLast(), PackedWeights()))
    assert plan.refines == plan.whole.refines
    assert plan.places == {"packed_weights": ("1x64", "2x64")}
    flagged = Plan(own_flags=Flags(FUSED, ())).keeping([KeptSite("padding", "8x8")])
    assert [step.name for step in flagged.steps] == ["separate_padding"]
    assert flagged.in_calling_thread().name == f"{FUSED} except for padding(8x8) on local-sync"
