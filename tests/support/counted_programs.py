"""Programs by name, of so many seconds per call, that take no time to make."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from speedups import timing

from mlir_sched.program.building import Attempt
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants.programs import Programs
from mlir_sched.program.variants.rewritten import RewrittenVariants
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.tasks import Model


@dataclass(frozen=True)
class Counted(Programs):
    """Programs of which what is compiled and timed is noted.

    Attributes:
        seconds: Seconds per call of each program, by name; one without them does not compile.
        rewritten: The variants with rewrites.
        build_s: Seconds that each takes to be compiled.
    """

    seconds: Mapping[str, float] = field(default_factory=dict)
    rewritten: Sequence[Variant] = ()
    build_s: float = 0.0
    compiled: list[str] = field(default_factory=list)
    timed: list[tuple[str, ...]] = field(default_factory=list)

    @contextmanager
    def rewriting(self) -> Iterator[Callable[[], RewrittenVariants]]:
        yield lambda: RewrittenVariants(tuple(self.rewritten))

    def build(self, variant: Variant) -> BuiltVariant:
        self.compiled.append(variant.name)
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("code", variant.name)
        model = Model(str(self.source.path), (), (), ())
        return BuiltVariant(variant, model, file.getvalue(), None, (), build_s=self.build_s)

    def first(self, built: BuiltVariant) -> BuiltVariant:
        return built

    def attempt(self, variant: Variant, default: Model) -> Attempt:
        del default
        return Attempt(self.build(variant)) if variant.name in self.seconds else Attempt(None, "it does not compile")

    def time(self, built: Sequence[BuiltVariant]) -> tuple[tuple[BuiltVariant, ...], dict[str, str]]:
        self.timed.append(tuple(each.variant.name for each in built))
        seconds = [self.seconds[each.variant.name] for each in built]
        call_s = self.seconds[DEFAULT]
        return tuple(replace(b, timing=timing(s, call_s / s)) for b, s in zip(built, seconds, strict=True)), {}

    def profiled(self, built: BuiltVariant) -> BuiltVariant:
        return self.profiled_first(built)

    def profiled_first(self, built: BuiltVariant) -> BuiltVariant:
        return replace(built, profile=ProgramProfile({"a": self.seconds[built.variant.name]}, {"a": 1}))
