"""The programs of a model without scripts: what can be made of it, and what that takes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mlir_sched.program.building import (
    Attempt,
    build_variant,
    first_variant,
    profiled,
    profiled_first,
    time_variants,
    try_variant,
)
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites.pipeline import StagedSite
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.rewritten import (
    RewrittenVariants,
    decided_variant,
    placed_sites,
    planned_variant,
    rewriting,
)
from mlir_sched.program.whole_program import difference
from mlir_sched.runner import Runner, RunnerOptions
from mlir_sched.sampling import Value
from mlir_sched.targets.target import Target
from mlir_sched.tasks import Model
from mlir_sched.tensors.parameters import ParameterFile
from mlir_sched.tensors.values import FunctionValues
from mlir_sched.tuned_folder.result import Repair


@dataclass(frozen=True)
class Source:
    """What programs are made from."""

    path: Path
    target: Target
    parameters: tuple[ParameterFile, ...] = ()


@dataclass(frozen=True)
class Programs(ABC):
    """Makes the programs of a model by IREE, and says what they take: measured, or estimated by a model.

    Attributes:
        source: What they are made from.
    """

    source: Source

    def build(self, variant: Variant) -> BuiltVariant:
        """Compile a variant that has to compile; see :func:`~mlir_sched.program.building.build_variant`."""
        return build_variant(self.source.path, self.source.target, variant, self.source.parameters)

    @abstractmethod
    def first(self, built: BuiltVariant) -> BuiltVariant:
        """Return the default variant, ready to be compared with; errors as in :func:`first_variant`."""

    def judged(
        self,
        repair: Repair,
        plain: BuiltVariant,  # noqa: ARG002 - nothing is run by default
        repaired: BuiltVariant,  # noqa: ARG002
    ) -> Repair:
        """Return a repair with what is known of plain ``iree-compile``'s code; by default nothing.

        Args:
            plain, repaired: The default variant without the repair and with it.
        """
        return repair

    @abstractmethod
    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        """Return variants with their times, and why some have none; see :func:`time_variants`."""

    def rewriting(self) -> AbstractContextManager[Callable[[], RewrittenVariants]]:
        """Try the rewrites beside other work; see :func:`~mlir_sched.program.variants.rewritten.rewriting`."""
        return rewriting(self.source.path, self.source.target)

    def planned(self, plan: Plan) -> Variant:
        """Return the variant by a plan; see :func:`~mlir_sched.program.variants.rewritten.planned_variant`."""
        return planned_variant(self.source.path, self.source.target, plan)

    def placed_sites(self, plan: Plan) -> tuple[StagedSite, ...]:
        """Return the sites of a plan; see :func:`~mlir_sched.program.variants.rewritten.placed_sites`."""
        return placed_sites(self.source.path, self.source.target, plan)

    def decided(self, values: Mapping[str, Value]) -> Variant:
        """Return the variant by decisions; see :func:`~mlir_sched.program.variants.rewritten.decided_variant`."""
        return decided_variant(self.source.path, self.source.target, values)

    def attempt(self, variant: Variant, default: Model) -> Attempt:
        """Build a variant beside the default; see :func:`try_variant`."""
        return try_variant(self.source.path, self.source.target, variant, self.source.parameters, default)

    def profiled(self, built: BuiltVariant) -> BuiltVariant:
        """Return a variant with its profile; see :func:`profiled`."""
        return profiled(built, self.source.target)

    def profiled_first(self, built: BuiltVariant) -> BuiltVariant:
        """Return a variant that was not timed with its profile; see :func:`profiled_first`."""
        return profiled_first(built, self.source.target)


@dataclass(frozen=True)
class MeasuredPrograms(Programs):
    """Programs that a runner measures.

    Attributes:
        values: What the user gives for inputs and outputs of their functions.
    """

    runner: Runner
    values: Sequence[FunctionValues] = ()

    @staticmethod
    @contextmanager
    def open(
        source: Source, options: RunnerOptions, values: Sequence[FunctionValues] = ()
    ) -> Iterator[MeasuredPrograms]:
        """Start a runner and end it; the other arguments as the attributes."""
        with Runner(options) as runner:
            yield MeasuredPrograms(source, runner, values)

    def first(self, built: BuiltVariant) -> BuiltVariant:
        """Return the default variant without the functions that cannot be run or checked; it is not timed yet."""
        return first_variant(built, self.source.target, self.runner, self.values)

    def judged(self, repair: Repair, plain: BuiltVariant, repaired: BuiltVariant) -> Repair:
        """Check plain ``iree-compile``'s code against that of the repaired program, and profile it."""
        profile = self.profiled_first(plain).profile
        wrong = difference(self.runner, repaired.model, repaired.compiled(), plain.compiled())
        return replace(repair, wrong=wrong, plain_s=profile.total_s if profile else None)

    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        """Time the variants in turns."""
        return time_variants(built, self.runner)
