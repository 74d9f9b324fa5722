"""What is decided in one session is reported from another one, and what does not hold there falls back."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from emission_cases import DISPATCH, OPTIONS, SPACE, Nothing, timing
from made_result import LOADING
from plans import flagged
from replayed_run import TARGET, task_of

from mlir_sched.compiler import ModelCompileError
from mlir_sched.compiler.compile_result import CompileResult, failed
from mlir_sched.emission import export, sessions
from mlir_sched.emission.export import Emission, emit
from mlir_sched.emission.final_measurement import ProgramFailedError, ProgramTimings, compile_scripts
from mlir_sched.emission.finalists import Finalists, Winner
from mlir_sched.errors import EnvironmentFailureError, Failure, FailureClass
from mlir_sched.library.library import TunedSequence
from mlir_sched.outcome import Timing, Verdict, as_untuned
from mlir_sched.program.profile import ProgramProfile
from mlir_sched.program.proof import Proven
from mlir_sched.program.variant import BuiltVariant
from mlir_sched.program.variants.choosing import BuiltVariants
from mlir_sched.program.whole_program import CompiledModel
from mlir_sched.runner import BaselineError
from mlir_sched.tasks import Model
from mlir_sched.trace import Trace
from mlir_sched.tuned_folder.installation import EmittedFiles
from mlir_sched.tuned_folder.result import Loading
from mlir_sched.tuning.ledger import Ledger


def built(name: str) -> BuiltVariant:
    return BuiltVariant(flagged(name), Model("m.mlir", (), (), (name,)), name.encode(), timing(1.0), (name,))


VARIANTS = [built("default"), built("O3"), replace(built("broken"), timing=None)]


def winner(key: str, saves: float) -> Winner:
    task = replace(task_of("matmul", DISPATCH), key=key, name=key)
    return Winner(task, SPACE, Trace("sketch", ()), "", "", timing(saves), timing(1.0), f"tuned_{key}", 0)


WINNERS = {key: winner(key, saves) for key, saves in (("a", 1.1), ("b", 3.0), ("c", 2.0), ("d", 1.2))}


Session = dict[str, Timing] | Failure
TIMEOUT = Failure(FailureClass.RUN_TIMEOUT, "stopped after 6 s")


@dataclass
class Program:
    """Timings of programs, session by session, or a failure; a program is known by its name or its scripts."""

    sessions: Sequence[Session]
    proven: list[tuple[str, ...]] = field(default_factory=list)
    references: list[str] = field(default_factory=list)
    loaded: list[tuple[str, str]] = field(default_factory=list)

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        self.proven.append((variant.variant.name, *sequences))
        vmfb = ("+".join(sequences) or variant.variant.name).encode()
        return Proven(variant, sequences, {}, EmittedFiles("", (vmfb.decode(),)), vmfb)

    def measure(
        self,
        runner: object,
        model: object,
        untuned: CompiledModel,
        others: Mapping[str, CompiledModel],
        emitted: CompiledModel,
    ) -> ProgramTimings:
        del runner, model
        self.references.append(untuned.vmfb.decode())
        session, *self.sessions = self.sessions
        if isinstance(session, Failure):
            raise ProgramFailedError(session)
        if not session:
            raise BaselineError("no reference")
        return ProgramTimings(
            timing(1.0),
            session[emitted.vmfb.decode()],
            {name: session[name] for name in others if name in session},
            Verdict.RIGHT,
        )

    def load(self, options: object, model: object, untuned: CompiledModel, tuned: CompiledModel) -> Loading:
        del options, model
        self.loaded.append((untuned.vmfb.decode(), tuned.vmfb.decode()))
        return LOADING

    def measure_all(
        self, runner: object, model: object, untuned: object, variants: Mapping[str, CompiledModel]
    ) -> tuple[Timing, Mapping[str, Timing]]:
        del runner, model, untuned
        session, *self.sessions = self.sessions
        assert not isinstance(session, Failure)
        if not session:
            raise BaselineError("no reference")
        return timing(1.0), {name: session[name] for name in variants}


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Any:
    def run(
        program: Program,
        winners: Mapping[str, Winner],
        variants: Sequence[BuiltVariant] = VARIANTS,
        left_s: float = math.inf,
    ) -> Emission:
        monkeypatch.setattr(export, "Prover", lambda *_: program)
        monkeypatch.setattr(sessions, "Runner", Nothing)
        monkeypatch.setattr(sessions, "measure_program", program.measure)
        monkeypatch.setattr(sessions, "measure_variants", program.measure_all)
        monkeypatch.setattr(sessions, "measure_loading", program.load)
        tuned = min((v for v in variants if v.timing is not None), key=lambda v: v.call_s)
        found, ledger = BuiltVariants(tuple(variants), {}), Ledger(OPTIONS, until=time.monotonic() + left_s)
        emission = emit(Path("m.mlir"), found, tuned, Finalists(winners), OPTIONS, TARGET, ledger)
        assert not program.sessions, "every session is used"
        return emission

    return run


def test_figures_are_those_of_the_session_that_decided_nothing(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.5), "O3": timing(1.1)}, {"a+b+c+d": timing(1.45)}])
    emission = emitted(program, WINNERS)
    assert emission.program.tuned.ratio == 1.45
    assert emission.program.variants == {"default": 1.0, "O3": 1.1}
    assert list(emission.winners) == [*WINNERS]
    assert program.proven == [("default", *WINNERS)]


def test_what_loading_takes_is_that_of_the_program_beside_the_default(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.5), "O3": timing(1.1)}, {"a+b+c+d": timing(1.45)}])
    assert emitted(program, WINNERS).program.loading == LOADING
    assert program.loaded == [("default", "a+b+c+d")]


def timed(name: str, seconds: float) -> BuiltVariant:
    timing = Timing(seconds, seconds, seconds, 9, 4.0 / seconds, 4.0 / seconds, 4.0 / seconds)
    return replace(built(name), timing=timing)


FAR_SLOWER = [timed("default", 4.0), timed("layout", 1.0), timed("slow", 3.9)]
"""The layout is tuned; its dispatches take little of its time."""


FAR_FASTER = {"a": winner("a", 8.0)}
"""All of the default's time is in this dispatch."""


def test_a_program_far_faster_than_all_variants_needs_no_session_that_decides(emitted: Any) -> None:
    program = Program([{"a": timing(7.5)}])
    emission = emitted(program, FAR_FASTER)
    assert program.references == ["default"]
    assert list(emission.winners) == ["a"]
    assert emission.program.tuned.ratio == 7.5
    assert emission.program.variants == {"default": 1.0, "O3": 1.0}


@pytest.mark.parametrize("reported", [timing(1.4), TIMEOUT])
def test_where_that_does_not_show_a_session_decides(emitted: Any, reported: Timing | Failure) -> None:
    first: list[Session] = [{"a": reported}] if isinstance(reported, Timing) else [reported, reported]
    program = Program([*first, {"a": timing(1.4)}, {"a": timing(1.3)}])
    emission = emitted(program, FAR_FASTER)
    assert list(emission.winners) == ["a"]
    assert emission.program.tuned.ratio == 1.3


def test_where_the_default_is_far_slower_the_fastest_variant_is_compared_with(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.2)}, {"a+b+c+d": timing(4.7)}])
    emission = emitted(program, WINNERS, FAR_SLOWER)
    assert program.references == ["layout", "default"]
    assert emission.program.tuned.ratio == 4.7
    assert emission.program.variants == {"default": 1.0, "layout": 4.0, "slow": 4.0 / 3.9}


def test_noise_of_the_default_does_not_hide_that_scripts_beat_the_fastest_variant(emitted: Any) -> None:
    noisy = Timing(1e-3, 1e-3, 1e-3, 9, 0.8, 0.7, 0.9)
    program = Program([{"a+b+c+d": timing(1.16), "default": noisy}, {"a+b+c+d": timing(1.4)}])
    emission = emitted(program, WINNERS, [timed("default", 1.3), timed("layout", 1.0)])
    assert program.references == ["layout", "default"]
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.variants == {"default": 1.0, "layout": 1.25}


def test_the_default_is_compared_with_where_it_fails_beside_the_fastest_variant(emitted: Any) -> None:
    sessions: list[Session] = [{"a+b+c+d": timing(1.2)}, {"a+b+c+d": timing(1.5), "layout": timing(1.3)}]
    program = Program([*sessions, {"a+b+c+d": timing(1.5)}])
    emission = emitted(program, WINNERS, [timed("default", 1.3), timed("layout", 1.0)])
    assert program.references == ["layout", "default", "default"]
    assert list(emission.winners) == [*WINNERS]


def test_scripts_have_to_beat_the_variant_that_they_are_compared_with(emitted: Any) -> None:
    slower = [{names: timing(0.9)} for names in ("a+b+c+d", "b+c", "b")]
    emission = emitted(Program([*slower, {"layout": timing(4.0)}]), WINNERS, FAR_SLOWER)
    assert not emission.winners
    assert emission.program.variant == "layout"


BAD = {"layout": "its proof failed (compile_error): 'linalg.pack' op is bad"}


@dataclass
class Unproven(Program):
    """A program of which one variant does not compile with verification when it has no scripts."""

    failed: int = 0

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        if not sequences and variant.variant.name == "layout":
            self.failed += 1
            raise ModelCompileError("error: 'linalg.pack' op is bad")
        return super().prove(variant, sequences)


def test_a_variant_that_does_not_compile_when_it_is_proven_is_not_emitted(emitted: Any) -> None:
    slower: list[Session] = [{names: timing(0.9)} for names in ("a+b+c+d", "b+c", "b")]
    emission = emitted(Unproven([*slower, {"default": timing(1.0)}]), WINNERS, FAR_SLOWER)
    assert not emission.winners
    assert emission.program.variant == "default"
    assert emission.left_out == BAD


class NeverProven(Unproven):
    """One variant does not compile with verification, whatever scripts it has."""

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        return super().prove(variant, {} if variant.variant.name == "layout" else sequences)


def test_scripts_of_a_variant_that_cannot_be_proven_at_all_end_no_run(emitted: Any) -> None:
    program = NeverProven([{"layout": timing(1.2), "slow": timing(0.5)}, {"default": timing(1.0)}])
    emission = emitted(program, WINNERS, FAR_SLOWER)
    assert not emission.winners
    assert emission.program.variant == "default"
    assert (emission.left_out, program.failed) == (BAD, 1)
    assert set(emission.reasons.values()) == {"'linalg.pack' op is bad"}


class Dropping(Program):
    """A program in which no script can be proven."""

    def prove(self, variant: BuiltVariant, sequences: Mapping[str, TunedSequence]) -> Proven:
        return replace(super().prove(variant, sequences), sequences={}, dropped=dict.fromkeys(sequences, "at fault"))


def test_what_was_proven_without_scripts_is_not_compiled_once_more(emitted: Any) -> None:
    program = Dropping([{"O3": timing(1.0)}, {"a+b+c+d": timing(1.0)}])
    emission = emitted(program, WINNERS)
    assert (emission.program.variant, emission.left_out) == ("default", {})
    assert set(emission.reasons.values()) == {"at fault"}
    assert program.proven == [("default", *WINNERS)]


def test_the_default_serves_where_the_fastest_variant_cannot(emitted: Any) -> None:
    program = Program([{}, {"a+b+c+d": timing(4.8)}, {"a+b+c+d": timing(4.7)}])
    emission = emitted(program, WINNERS, FAR_SLOWER)
    assert program.references == ["layout", "default", "default"]
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.variants == {"default": 1.0, "slow": 4.0 / 3.9}


def test_scripts_that_are_not_faster_when_measured_again_are_not_emitted(emitted: Any) -> None:
    sessions = [
        {"a+b+c+d": timing(1.03), "O3": timing(1.0)},
        {"a+b+c+d": timing(0.98)},
        {"default": timing(1.0)},
    ]
    emission = emitted(Program(sessions), WINNERS)
    assert not emission.winners
    assert emission.program.variant == "default"
    assert emission.program.tuned.ratio == 1.0
    assert set(emission.reasons.values()) == {"the program was 0.98x (0.98 to 0.98) when measured again"}


def test_a_disturbed_session_does_not_decide(emitted: Any) -> None:
    disturbed = replace(timing(3.0), ratio_low=0.9)
    sessions = [
        {"a+b+c+d": disturbed, "O3": timing(1.0)},
        {"a+b+c+d": timing(3.0), "O3": timing(1.0)},
        {"a+b+c+d": disturbed},
        {"a+b+c+d": timing(2.9)},
    ]
    emission = emitted(Program(sessions), WINNERS)
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.tuned.ratio == 2.9


def test_after_two_disturbed_sessions_the_untuned_program_is_emitted(emitted: Any) -> None:
    disturbed = {"a+b+c+d": replace(timing(3.0), ratio_low=0.9), "O3": timing(1.0)}
    without: list[Session] = [{names: timing(0.9), "O3": timing(1.0)} for names in ("b+c", "b", "b")]
    emission = emitted(Program([disturbed, disturbed, *without, {"default": timing(1.0)}]), WINNERS)
    assert not emission.winners
    assert emission.program.variant == "default"


def test_a_failure_that_may_be_the_machines_is_a_disturbance(emitted: Any) -> None:
    sessions: list[Session] = [TIMEOUT, {"a+b+c+d": timing(1.5), "O3": timing(1.1)}, TIMEOUT, {"a+b+c+d": timing(1.4)}]
    emission = emitted(Program(sessions), WINNERS)
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.tuned.ratio == 1.4


def test_the_untuned_program_is_emitted_although_a_session_fails(emitted: Any) -> None:
    emission = emitted(Program([{"O3": timing(1.0)}, TIMEOUT, {"default": timing(1.0)}]), {})
    assert emission.program.variant == "default"


def test_untuned_code_that_is_wrong_by_the_users_reference_is_emitted_as_wrong(emitted: Any) -> None:
    default = replace(VARIANTS[0], model=replace(VARIANTS[0].model, untuned_wrong={"main": "output 0: zeros"}))
    emission = emitted(Program([{"O3": timing(1.0)}]), {}, [default, VARIANTS[1]])
    assert (emission.program.variant, emission.program.verdict) == ("default", Verdict.WRONG)
    right = emitted(Program([{"O3": timing(1.3)}, {"O3": timing(1.3)}]), {}, [default, VARIANTS[1]])
    assert (right.program.variant, right.program.verdict) == ("O3", Verdict.RIGHT)


def test_wrong_numbers_are_wrong_at_once(emitted: Any) -> None:
    wrong = Failure(FailureClass.WRONG_RESULT, "output 0: zeros")
    emission = emitted(Program([wrong, {"O3": timing(1.0)}, {"default": timing(1.0)}]), WINNERS)
    assert set(emission.reasons.values()) == {"the emitted program fails its check (wrong_result): output 0: zeros"}


def test_the_half_that_saves_least_goes_first_where_scripts_slow_the_program(emitted: Any) -> None:
    sessions = [
        {"a+b+c+d": timing(0.9), "O3": timing(1.0)},
        {"b+c": timing(1.6), "O3": timing(1.0)},
        {"b+c": timing(1.6)},
    ]
    emission = emitted(Program(sessions), WINNERS)
    assert list(emission.winners) == ["b", "c"]
    assert set(emission.reasons) == {"a", "d"}
    assert "with the scripts and 1.00x" in emission.reasons["a"]


@pytest.mark.parametrize(("again", "variant", "ratio"), [(timing(1.05), "O3", 1.05), (timing(0.97), "default", 1.0)])
def test_flags_that_do_not_hold_when_measured_again_are_not_emitted(
    emitted: Any, again: Timing, variant: str, ratio: float
) -> None:
    sessions = [{"O3": timing(1.06)}, {"O3": again}, *([{"default": timing(1.0)}] if variant == "default" else [])]
    emission = emitted(Program(sessions), {})
    assert (emission.program.variant, emission.program.tuned.ratio) == (variant, ratio)
    assert emission.files.flags == (variant,)
    lost = {"O3": "the program was 0.97x (0.97 to 0.97) when measured again"}
    assert emission.left_out == (lost if variant == "default" else {})


@pytest.mark.parametrize(("found", "kept"), [(ProgramProfile({}, {"a": 1, "b": 2}), ["a", "b"]), (None, ["a"])])
def test_scripts_that_no_run_of_the_program_has_called_are_not_emitted(
    found: ProgramProfile | None, kept: list[str], emitted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    winners = {
        key: replace(w, task=replace(w.task, may_not_run=key in "bc")) for key, w in WINNERS.items() if key != "d"
    }
    monkeypatch.setattr(sessions, "profile", lambda *_: found)
    name = "+".join(kept)
    emission = emitted(Program([{name: timing(1.6), "O3": timing(1.0)}, {name: timing(1.6)}]), winners)
    assert list(emission.winners) == kept
    assert emission.reasons == dict.fromkeys([key for key in winners if key not in kept], export.NOT_RUN)


@pytest.mark.parametrize(("left_s", "kept"), [(math.inf, ["b", "c"]), (0.0, [])])
def test_fewer_scripts_are_tried_while_there_is_time(left_s: float, kept: list[str], emitted: Any) -> None:
    slower = {"a+b+c+d": timing(0.9), "O3": timing(1.0)}
    again: list[Session] = [{"b+c": timing(1.6), "O3": timing(1.0)}, {"b+c": timing(1.6)}]
    emission = emitted(Program([slower, *(again if kept else [])]), WINNERS, left_s=left_s)
    assert list(emission.winners) == kept
    assert kept or emission.program.tuned == as_untuned(timing(1.0)), "the untuned program is not measured once more"
    assert emission.program.loading == (LOADING if kept else None), "nor is loading"


SLOW = [timed("default", 4.0), timed("layout", 3.0)]
"""A session beside the default takes about a minute."""


def test_without_time_for_another_session_the_one_that_decided_beside_the_default_reports(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.6, width=0.1), "default": timing(0.75, width=0.05)}])
    emission = emitted(program, WINNERS, SLOW, left_s=20.0)
    assert list(emission.winners) == [*WINNERS]
    assert program.references == ["layout"]
    found = emission.program
    assert (found.tuned.ratio, found.untuned.ratio_low, found.untuned.ratio_high) == (
        pytest.approx(1.6 / 0.75),
        1.0,
        1.0,
    )
    assert found.tuned.ratio_low == pytest.approx(1.5 / 0.8), "the noise of the default widens the interval"
    assert found.of_deciding_session
    assert not emission.lost_figures


def test_flags_are_reported_by_another_session_whatever_time_is_left(emitted: Any) -> None:
    program = Program([{"layout": timing(1.4)}, {"layout": timing(1.35)}])
    emission = emitted(program, {}, SLOW, left_s=20.0)
    assert (emission.program.variant, emission.program.tuned.ratio) == ("layout", 1.35)
    assert not emission.program.of_deciding_session


def test_a_default_that_was_too_slow_for_the_session_that_decides_is_in_the_one_that_reports(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.2)}, {"a+b+c+d": timing(4.7)}])
    emission = emitted(program, WINNERS, FAR_SLOWER, left_s=25.0)
    assert (emission.program.tuned.ratio, program.references) == (4.7, ["layout", "default"])
    assert program.loaded == [], "four calls of four seconds fit, but not with the session"


def test_without_time_a_disturbed_session_that_reports_is_not_repeated(emitted: Any) -> None:
    disturbed = replace(timing(7.5), ratio_low=0.9)
    program = Program([{"a": disturbed}, {"a": timing(1.3)}])
    assert emitted(program, FAR_FASTER, left_s=0.0).program.tuned.ratio == 1.3, "another session decides"


LOST = (
    "the times of the whole program are of an earlier session: in the last one the untuned program failed "
    "(no reference); the same command measures them again"
)


def test_untuned_code_that_fails_in_the_last_session_costs_the_figures_and_not_the_scripts(emitted: Any) -> None:
    program = Program([{"a+b+c+d": timing(1.5), "O3": timing(1.1)}, {}, {}])
    emission = emitted(program, WINNERS)
    assert list(emission.winners) == [*WINNERS]
    assert emission.program.tuned.ratio == 1.5
    assert emission.program.verdict is Verdict.RIGHT
    assert emission.lost_figures == LOST


@pytest.mark.parametrize("sessions", [[{}, {}], [TIMEOUT, TIMEOUT]])
def test_untuned_code_that_fails_at_the_end_leaves_the_figures_of_the_beginning(
    sessions: list[Session], emitted: Any
) -> None:
    emission = emitted(Program([{"O3": timing(1.0)}, *sessions]), {})
    assert emission.program.variant == "default"
    assert emission.program.tuned == as_untuned(timing(1.0))
    assert emission.files.flags == ("default",)
    assert "of an earlier session" in emission.lost_figures


def test_variants_that_cannot_be_compared_at_the_end_are_ranked_as_at_the_beginning(emitted: Any) -> None:
    faster = replace(built("O3"), timing=timing(1.3))
    emission = emitted(Program([{}, {}, {}, {}]), {}, [built("default"), faster])
    assert (emission.program.variant, emission.program.tuned.ratio) == ("O3", 1.3)
    assert emission.lost_figures == LOST


def test_scripts_that_no_session_could_compare_are_not_emitted(emitted: Any) -> None:
    emission = emitted(Program([{}, {}, {"O3": timing(1.0)}, {"default": timing(1.0)}]), WINNERS)
    assert not emission.winners
    assert all("the untuned program failed" in why for why in emission.reasons.values())
    assert emission.program.variant == "default"
    assert not emission.lost_figures


def test_untuned_code_that_fails_once_at_the_end_costs_a_session(emitted: Any) -> None:
    better = {"a+b+c+d": timing(1.5), "O3": timing(1.1)}
    emission = emitted(Program([{}, better, {}, {"a+b+c+d": timing(1.4)}]), WINNERS)
    assert list(emission.winners) == [*WINNERS]
    assert (emission.program.tuned.ratio, emission.lost_figures) == (1.4, "")


class FullDisk:
    """A compiler pool without space."""

    flags, chain_length = (), 0

    def compile_all(self, candidates: Sequence[object]) -> Iterator[tuple[int, CompileResult]]:
        for index in range(len(candidates)):
            yield index, failed(FailureClass.COMPILE_ERROR, "cannot write a.o: No space left on device", 0.1)


def test_no_script_is_dropped_for_a_failure_of_the_machine() -> None:
    with pytest.raises(EnvironmentFailureError, match="No space left"):
        compile_scripts([(task_of("matmul", DISPATCH), ["a script"])], FullDisk())  # type: ignore[arg-type]
