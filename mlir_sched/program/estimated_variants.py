"""The program variants of a run without a device: compiled, with times that a model estimates."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mlir_sched.program.building import build_variant, try_variant
from mlir_sched.program.choice import NO_TIME_TO_COMPILE, Choice
from mlir_sched.program.choosing import BuiltVariants, distinct
from mlir_sched.program.program_space import ProgramSpace
from mlir_sched.program.rewritten import flagged_variants, rewriting
from mlir_sched.program.settling import SETTLED, SETTLING, is_far_faster
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.targets.target import Target
from mlir_sched.tensors.parameters import ParameterFile


def estimate_variants(
    path: Path,
    target: Target,
    parameters: tuple[ParameterFile, ...],
    choice: Choice,
    estimate: Callable[[BuiltVariant, BuiltVariant | None], BuiltVariant],
) -> BuiltVariants:
    """Compile the model under every variant of the target and estimate the times of all of them.

    As in :func:`~mlir_sched.program.choosing.build_variants`, a variant that makes the program far faster leaves the
    others no chance. No refinement of a variant is known on devices with a model.

    Args:
        path: The model.
        target: What to compile for.
        parameters: Files with the model's weights.
        choice: Says which variants are compiled.
        estimate: Returns a variant with its estimated time, relative to that of the default, and the profile that
            belongs to it; for the default, the second argument is None.

    Raises:
        ModelCompileError: IREE does not compile the default variant.
        UserError: The file is no program that can be tuned.
    """
    default, *flagged = flagged_variants(target)
    with rewriting(path, target) as found:
        first = estimate(build_variant(path, target, default, parameters), None)
        rewritten = found()
    choice.expects(call_s=0.0, build_s=first.build_s)
    built, settled, left_out, errors = [first], list[str](), dict(rewritten.left_out), list(rewritten.internal_errors)
    variants = [*flagged, *rewritten.variants]
    for variant in sorted(variants, key=lambda variant: variant.name not in SETTLING):
        if settled and variant.name not in SETTLING:
            left_out[variant.name] = SETTLED.format(" and ".join(settled))
            continue
        if not choice.wants(variant.name):
            left_out[variant.name] = NO_TIME_TO_COMPILE
            continue
        attempt = try_variant(path, target, variant, parameters, first.model)
        if attempt.built is None:
            left_out[variant.name] = attempt.why
            errors += [attempt.internal_error] if attempt.internal_error else []
            choice.fails(variant.name)
        elif len(distinct([*built, attempt.built])) > len(built):
            built.append(estimate(attempt.built, first))
            far_faster = variant.name in SETTLING and is_far_faster(variant.name, built[-1].measured.ratio, first)
            settled += [variant.name] if far_faster and choice.settles(variant.name, far_faster=True) else []
    plans = (default.plan, *(variant.plan for variant in variants))
    return BuiltVariants(tuple(built), left_out, tuple(errors), ProgramSpace(plans, rewritten.sites), tuple(settled))
