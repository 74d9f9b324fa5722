"""Runs without a search: which program variant is compiled beside the default, and that one alone has candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from counted_programs import Counted
from plans import Named, flagged
from plans import Slow as SlowRewrite
from replayed_run import METHOD, TARGET, Heard, matmul_dispatch, task_of, turns_of
from speedups import Speedups, timing

from mlir_sched.corpus import Corpus
from mlir_sched.corpus.sources import Asked, Place
from mlir_sched.database import RecordStore
from mlir_sched.database.record import StoredProgram, measuring_context
from mlir_sched.program.plan import Plan
from mlir_sched.program.rewrites import cpu_rewrites
from mlir_sched.program.variant import BuiltVariant, Variant
from mlir_sched.program.variants import choosing
from mlir_sched.program.variants.choosing import BuiltVariants, build_variants
from mlir_sched.program.variants.compile_policy import CHOSEN_BEFORE, NOT_FORESEEN, NOT_SETTLED, Foreseen
from mlir_sched.program.variants.early_decisions import LAYOUT
from mlir_sched.program.variants.programs import Source
from mlir_sched.space.space import Space
from mlir_sched.tasks import Model
from mlir_sched.tuning.budget import PICKS
from mlir_sched.tuning.one_shot import OneShot, SettledVariant, without_search
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.transfer import Transfer, TransferPlan
from mlir_sched.tuning.tuning_run import TuningRun

OPTIONS = TuneOptions(trials=0)
REFINED, CONTIGUOUS, UNKNOWN = f"{LAYOUT}+packed_weights", "contiguous_filters", "a rewrite of another version"
REWRITTEN = [Variant(plan) for plan in map(Plan, cpu_rewrites(1)) if plan.name in (LAYOUT, REFINED, CONTIGUOUS)]
ALL = (LAYOUT, REFINED, CONTIGUOUS, "O3")
SHAPES = {"first": (64, 96, 32), "second": (128, 64, 48)}
TASKS = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]


@dataclass
class Told(SettledVariant):
    """A choice that is told what is predicted."""

    prediction: Foreseen | None = None

    @property
    def foresees(self) -> bool:
        return self.prediction is not None

    def foreseen(self, default: BuiltVariant, variants: Sequence[Variant]) -> Foreseen | None:
        assert default.profile is not None
        assert variants
        return self.prediction


@dataclass
class Machine:
    """A model file, a store, and how a program's variants are chosen there.

    Attributes:
        favours: What the profile of the default speaks for.
    """

    folder: Path
    store: RecordStore
    favours: list[str] = field(default_factory=list)

    def keep(self, variant: str, *others: str, failed: str = "") -> None:
        """Have an earlier run have chosen a variant, beside others that it timed, and one that failed."""
        compared = dict.fromkeys(others, 0.5) | ({failed: 0.0} if failed else {})
        program = StoredProgram(measuring_context(TARGET), (), {"variant": variant}, 2.0, variants=compared)
        self.store.keep_program(program)

    def built(
        self, compiling: Sequence[str] = ALL, prediction: Foreseen | None = None
    ) -> tuple[list[str], BuiltVariants]:
        """Return what a run compiles where only some variants compile, all of them slower than the default."""
        model = self.folder / "model.mlir"
        if not model.exists():
            model.write_text("module {}")
        programs = Counted(Source(model, TARGET), {"default": 1.0, **dict.fromkeys(compiling, 5.0)}, REWRITTEN)
        policy = Told.of(model, TARGET, OPTIONS, self.store, 0.0)
        policy.prediction = prediction
        found = build_variants(programs, policy)
        policy.keep()
        return programs.compiled, found


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    with RecordStore.open("sqlite://") as store:
        made = Machine(tmp_path, store)
        monkeypatch.setattr(choosing, "favoured_by_profile", lambda *_: made.favours)
        yield made


PREDICTED = Foreseen((REFINED, CONTIGUOUS), {REFINED: 1.5, CONTIGUOUS: 1.4}, 9)


@pytest.mark.parametrize(
    ("known", "favours", "prediction", "compiled", "dominant"),
    [
        ("", [], None, [], ()),
        ("", [LAYOUT], None, [REFINED], (LAYOUT,)),
        (UNKNOWN, [], None, [], ()),
        (UNKNOWN, [LAYOUT], None, [REFINED], (LAYOUT,)),
        (CONTIGUOUS, [LAYOUT], None, [CONTIGUOUS], (CONTIGUOUS,)),
        (LAYOUT, [LAYOUT], None, [LAYOUT], (LAYOUT,)),
        (REFINED, [], None, [REFINED], (LAYOUT,)),
        ("default", [LAYOUT], None, [], ()),
        ("", [], PREDICTED, [REFINED], (LAYOUT,)),
        ("", [LAYOUT], Foreseen((), {}, 9), [], ()),
        (CONTIGUOUS, [], replace(PREDICTED, order=(REFINED,)), [CONTIGUOUS], (CONTIGUOUS,)),
        ("default", [], PREDICTED, [], ()),
    ],
)
def test_one_variant_is_compiled_where_an_earlier_run_a_prediction_or_the_profile_speaks_for_it(
    machine: Machine,
    known: str,
    favours: list[str],
    prediction: Foreseen | None,
    compiled: list[str],
    dominant: tuple[str, ...],
) -> None:
    if known:
        machine.keep(known, "data-tiling")
    machine.favours = favours
    done, found = machine.built(prediction=prediction)
    assert done == ["default", *compiled]
    assert found.dominant == dominant, "what is settled is not compared, however slow it is without scripts"
    assert not {*compiled} & found.left_out.keys()
    assert CHOSEN_BEFORE not in found.left_out.values()
    if not compiled and not prediction:
        assert {*found.left_out.values()} == {NOT_SETTLED}
    if prediction and not known:
        assert NOT_FORESEEN in found.left_out.values()


def test_a_run_that_compared_nothing_has_not_decided_for_the_default(machine: Machine) -> None:
    machine.keep("default", failed="data-tiling")
    machine.favours = [LAYOUT]
    done, _ = machine.built()
    assert done == ["default", REFINED]


def test_where_none_compiles_that_something_speaks_for_no_other_one_takes_its_place(machine: Machine) -> None:
    machine.favours = [LAYOUT]
    assert machine.built([CONTIGUOUS, "O3"])[0] == ["default"]


def test_what_is_refined_takes_the_place_of_a_refinement_that_does_not_compile(machine: Machine) -> None:
    machine.favours = [LAYOUT]
    assert machine.built([LAYOUT, CONTIGUOUS])[0] == ["default", LAYOUT]


def test_a_run_that_goes_on_compiles_what_it_did_before(machine: Machine) -> None:
    machine.favours = [LAYOUT]
    first, _ = machine.built()
    machine.favours = []
    machine.keep(CONTIGUOUS)
    assert machine.built()[0] == first == ["default", REFINED]


def built(name: str, seconds: float, plan: Plan | None = None) -> BuiltVariant:
    task = replace(TASKS[name != "fast"], name=name, flags=(f"--{name}",))
    variant = flagged(name) if plan is None else Variant(plan)
    return BuiltVariant(
        variant, Model("model.mlir", (), (task,), task.flags), b"", timing(seconds * 1e-3, 1 / seconds), ()
    )


@contextmanager
def nothing() -> Iterator[Mapping[Place, Corpus]]:
    yield {}


class Noting(TransferPlan):
    """Keeps for which dispatches sources are looked for."""

    asked: list[set[object]] = []  # noqa: RUF012 - of all plans

    def decided(self, store: RecordStore, key: str, searched: Mapping[tuple[str, str], Asked]) -> Transfer:
        self.asked.append({each.dispatch for each in searched.values()})
        return super().decided(store, key, searched)


@pytest.mark.parametrize(("dominant", "chosen"), [((), "fast"), (("known",), "known")])
def test_one_variant_has_candidates_and_sources_the_fastest_unless_something_settles_another(
    dominant: tuple[str, ...], chosen: str
) -> None:
    default, *others = built("default", 1.0), built("fast", 0.5), built("known", 0.8)
    variants = [replace(default, model=replace(default.model, tasks=tuple(TASKS))), *others]
    evaluator, space = Speedups({each.variant.name: 2.0 for each in variants}), Space.default(TARGET)
    (one,) = OneShot.searched(variants, space, TARGET, dominant)
    with RecordStore.open("sqlite://") as store:
        run = TuningRun.of(
            OPTIONS, TARGET, space, store, variants, start=0.0, method=without_search(METHOD),
            transfer=Noting("plan", nothing), searched=[one],
        )  # fmt: skip
        search = OneShot.of(run, variants, Heard(), lambda _: {}, dominant=dominant)
        found = turns_of(search, lambda _: nullcontext(evaluator))
    assert (found.best.name, found.others, found.tried, run.budget.trials) == (chosen, (), PICKS, PICKS)
    assert evaluator.measured == [chosen] * PICKS
    assert Noting.asked.pop() == {task.dispatch for task in one.model.tasks}


def test_a_rewrite_that_refines_counts_by_what_it_refines() -> None:
    plan = Plan((Named("layout"), SlowRewrite("packed")))
    variants = [built("default", 1.0), built("fast", 0.5), built("packed", 2.0, plan)]
    assert OneShot.searched(variants, Space.default(TARGET), TARGET, ("layout",)) == [variants[2]]
