"""The numeric checks of a dispatch or a program, derived from what it computes.

Two schedules of one program differ in the order of additions and in whether a multiply and an add are fused. On small
integers no order of additions rounds (``exactness.py``), so results must be equal, or differ by no more than the
rounding of the ops after the sums. On other inputs results differ by rounding, up to the tolerance (``rounding.py``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mlir_sched.payload import Dispatch, TensorSpec
from mlir_sched.runner.checks.check import Check, Checks, InputKind, IntegerRange, Integers, Tolerance
from mlir_sched.runner.checks.exactness import ExactInputs, checks_to_cover, exact_inputs, short
from mlir_sched.runner.checks.rounding import dispatch_tolerances, machine_epsilon, model_tolerance, why_sums_differ
from mlir_sched.tasks.task import Task
from mlir_sched.tensors.values import FunctionValues

_INDIRECT = frozenset({"extract", "load", "gather"})
_PARTIAL = frozenset(
    {"log", "log1p", "log2", "log10", "sqrt", "rsqrt", "powf", "divf", "cbrt", "acos", "asin", "atanh"}
)


def checks_for_dispatch(
    dispatch: Dispatch,
    numbers: Sequence[tuple[int | float, ...]] = (),
    integer_ranges: Sequence[IntegerRange | None] = (),
) -> Checks:
    """Return the checks for one dispatch: on integers, on random floats and, for roots and the like, on positive ones.

    Args:
        numbers: The combinations of values that the program passes for its inputs by value (``Task.numbers``). All
            checks have the first; each of the others has a check on random floats of its own.
        integer_ranges: Range of each input's integers, by position, as of :class:`.task.Task`; empty where unknown.

    On integers results must be equal where all ops are exact, else as near as the rounding of the other ops allows. The
    check is repeated with other parts of a sparse operand where one part leaves out some terms of the sums. Integer
    inputs take all values of their type in some check.
    """
    exact = exact_inputs(dispatch)
    whole = Integers.WHOLE if integer_ranges or not _reads_indirectly(dispatch) else Integers.INDICES
    small = Integers.SMALL if whole == Integers.WHOLE and not exact.whole else whole
    rounding = dispatch_tolerances(dispatch)
    on_integers = _on_integers(dispatch, exact, rounding)
    like = partial(
        Check, doubt=why_sums_differ([dispatch]), bound=exact.bound, integer_ranges=tuple(integer_ranges) or None
    )
    exactly = partial(like, InputKind.EXACT, integers=small, parts=exact.parts, sparse=exact.sparse)
    covering = range(checks_to_cover(dispatch, exact))
    checks = [exactly(seed=1 + 2 * part, part=part, tolerances=on_integers) for part in covering]
    tolerances = tuple((kind, Tolerance(relative)) for kind, relative in rounding.items())
    kinds = (InputKind.RANDOM, InputKind.POSITIVE) if _is_partial(dispatch) else (InputKind.RANDOM,)
    checks += [like(kind, 2 + 2 * i, integers=whole, tolerances=tolerances) for i, kind in enumerate(kinds)]
    first, *others = numbers or ((),)
    on_floats = next(check for check in checks if check.kind is InputKind.RANDOM)
    return (*(replace(check, numbers=first) for check in checks), *(replace(on_floats, numbers=n) for n in others))


def checks_for_task(task: Task) -> Checks:
    """Return the checks for a task's dispatch.

    Where the values that the program passes are known, the last check has these, and random ones have their magnitudes.

    Raises:
        ValueError: The task has no dispatch that can be tuned.
    """
    if task.dispatch is None:
        raise ValueError(f"{task.name} cannot be tuned: {task.not_tunable}")
    checks = checks_for_dispatch(task.dispatch, task.numbers, task.integer_ranges)
    if not task.captured:
        return checks
    drawn = [replace(c, captured=task.captured) if c.kind == InputKind.RANDOM else c for c in checks]
    random = next(check for check in drawn if check.kind == InputKind.RANDOM)
    return (*drawn, replace(random, kind=InputKind.CAPTURED))


def checks_for_model(
    outputs: Sequence[TensorSpec],
    dispatches: Iterable[Dispatch] = (),
    *,
    integer_ranges: tuple[IntegerRange | None, ...] | None = None,
    given: FunctionValues | None = None,
) -> Checks:
    """Return the checks for a whole program: on integers, on random floats, and last on what the user gives, if so.

    Tolerances are by output type.

    Outputs narrower than f32 must be equal on integers where the whole program is exact. Other outputs need not be: a
    rewrite of a convolution in f32 (``winograd``) rounds where the sums of products do not.

    Args:
        dispatches: Dispatches of the program; empty if they are not known.
        integer_ranges: Ranges of the values of integer inputs, by position of the input, see :class:`Check`. Without
            them the values are 0 or 1, as any integer input may be an index.
        given: The user's inputs, and what the outputs have to be for them; None without.
    """
    known = list(dispatches)
    exact = _exact_model(known)
    kinds = sorted({spec.element_type for spec in outputs})
    rounding = {kind: model_tolerance(kind, known) for kind in kinds}
    integers = Integers.INDICES if integer_ranges is None else Integers.WHOLE
    equal = {kind: exact.below if machine_epsilon(kind) > machine_epsilon("f32") else 0.0 for kind in kinds}
    on_integers = tuple((kind, Tolerance(rounding[kind], equal[kind])) for kind in kinds)
    on_floats = tuple((kind, Tolerance(rounding[kind])) for kind in kinds)
    like = partial(Check, doubt=why_sums_differ(known), bound=1, integers=integers, integer_ranges=integer_ranges)
    return (
        like(InputKind.EXACT, 1, parts=exact.parts, sparse=exact.sparse, tolerances=on_integers),
        like(InputKind.RANDOM, 2, tolerances=on_floats),
        *([] if given is None else [Check(InputKind.GIVEN, 0, tolerances=on_floats, given=given)]),
    )


def _on_integers(
    dispatch: Dispatch, exact: ExactInputs, rounding: Mapping[str, float]
) -> tuple[tuple[str, Tolerance], ...]:
    """Return the tolerances on integer inputs, by element type.

    An exact dispatch may still scale by a constant that is not visible here: then its results are no whole numbers,
    and the rounding of all its ops is allowed.
    """
    inexact = dispatch_tolerances(dispatch, exact.ops)
    return tuple(
        (kind, Tolerance(inexact[kind]) if inexact[kind] else Tolerance(rounding[kind], exact.below))
        for kind in inexact
    )


def _exact_model(dispatches: Sequence[Dispatch]) -> ExactInputs:
    """Return inputs of magnitude 1 for a whole program, and the magnitude below which results must be equal (0: none).

    A dispatch reads results of earlier dispatches, which are larger than the inputs, so its partial sums are larger,
    too: with several dispatches, results must be well below the magnitude that is exact for each dispatch alone.
    """
    found = [exact_inputs(dispatch) for dispatch in dispatches]
    all_exact = all(
        exact.whole and len(exact.ops) == len(dispatch.ops) for exact, dispatch in zip(found, dispatches, strict=True)
    )
    below = min((exact.below for exact in found), default=0.0)
    return ExactInputs(
        1,
        parts=max((exact.parts for exact in found), default=1),
        sparse=tuple(dict.fromkeys(spec for exact in found for spec in exact.sparse)),
        below=(below if len(found) == 1 else below / 4) if all_exact else 0.0,
    )


def _reads_indirectly(dispatch: Dispatch) -> bool:
    names = [name for op in dispatch.ops for name in op.body] + list(dispatch.other_ops)
    return any(short(name) in _INDIRECT for name in names)


def _is_partial(dispatch: Dispatch) -> bool:
    """Say whether a dispatch calls a function that is not defined for all numbers."""
    return any(short(name) in _PARTIAL for op in dispatch.ops for name in op.body)
