"""Variants whose weights need more memory than a run allows are left out, each with its reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from fixed_targets import FIXED
from plans import Slow
from speedups import timing

from mlir_sched.library import RewriteScript
from mlir_sched.program.building import Attempt
from mlir_sched.program.plan import Plan
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants import choosing
from mlir_sched.program.variants.choosing import BuiltVariants, build_variants
from mlir_sched.program.variants.compile_policy import CompilePolicy
from mlir_sched.program.variants.programs import Programs, Source
from mlir_sched.program.variants.rewritten import RewrittenVariants
from mlir_sched.program.variants.weight_bound import TABLES_BYTES, TOO_LARGE, WeightBound
from mlir_sched.tasks import Model

MIB = 2**20
REWRITTEN = tuple(Variant(Plan((Slow(name),)), RewriteScript(name, "@r", "")) for name in ("folded", "transformed"))


def model_of(size: int) -> Model:
    return Model("model.mlir", (), (), (), weight_bytes=size)


@dataclass(frozen=True)
class Sized(Programs):
    """Programs of which the weights are known, by the names of their variants; nothing is compiled."""

    sizes: Mapping[str, int]

    def build(self, variant: Variant) -> BuiltVariant:
        model = model_of(self.sizes.get(variant.name, 100 * MIB))
        return BuiltVariant(variant, model, variant.name.encode(), None, ())

    def attempt(self, variant: Variant, default: Model) -> Attempt:
        del default
        return Attempt(self.build(variant))

    def first(self, built: BuiltVariant) -> BuiltVariant:
        return built

    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        return tuple(replace(each, timing=timing(1e-3, 1.0)) for each in built), {}

    def rewriting(self) -> AbstractContextManager[Callable[[], RewrittenVariants]]:
        return nullcontext(lambda: RewrittenVariants(REWRITTEN))


@dataclass
class Heard(CompilePolicy):
    """A policy that hears which variants fail."""

    failed: list[str] = field(default_factory=list)

    def note_failure(self, name: str) -> None:
        self.failed.append(name)


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Callable[..., BuiltVariants]:
    """Return a function that chooses among programs with folded weights and with larger, transformed ones."""
    monkeypatch.setattr(choosing, "program_hash", lambda vmfb: vmfb.decode())

    def choose(most: float | None, policy: CompilePolicy | None = None) -> BuiltVariants:
        sizes = {"folded": 99 * MIB, "transformed": 125 * MIB}
        programs = Sized(Source(Path("model.mlir"), FIXED), sizes)
        return build_variants(programs, policy, local_sync=False, most_weights=most)

    return choose


def names(found: BuiltVariants) -> set[str]:
    return {built.variant.name for built in found.built} & {"folded", "transformed"}


def test_a_variant_above_the_bound_is_left_out_with_its_reason(chosen: Callable[..., BuiltVariants]) -> None:
    policy = Heard()
    found = chosen(1.2, policy)
    assert names(found) == {"folded"}
    assert found.left_out == {"transformed": f"{TOO_LARGE}its calls read 125.0 MiB of weights, of at most 120.0 MiB"}
    assert policy.failed == ["transformed"], "another one may be compiled in its place"


@pytest.mark.parametrize("most", [None, 1.25])
def test_without_a_bound_or_within_it_all_variants_compete(
    most: float | None, chosen: Callable[..., BuiltVariants]
) -> None:
    found = chosen(most)
    assert names(found) == {"folded", "transformed"}
    assert not found.left_out


def test_tables_of_rewrites_are_no_weights() -> None:
    for own in (0, 100 * MIB):
        bound = WeightBound.of(1.0, model_of(own))
        assert not bound.why_above(model_of(own + TABLES_BYTES))
        assert bound.why_above(model_of(own + TABLES_BYTES + 1))
