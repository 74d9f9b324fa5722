"""Sources: which known tasks say something of the tasks of a run, and with how many of their candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import rule_ops
from fixed_targets import FIXED_CUDA
from measured_tasks import draws, failed, measured_task, timed
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.known_task import KnownTask
from mlir_sched.corpus.sources import (
    ROWS_PER_RUN,
    ROWS_PER_SOURCE,
    SOURCES_PER_TASK,
    Asked,
    Place,
    Source,
    chosen_sources,
    dump_sources,
    equal_parts,
    fastest_and_others,
    load_sources,
    sources_of,
)
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace

DISPATCH = matmul_dispatch(128, 256, 64)
ASKED = Asked(DISPATCH, TARGET)
ELSEWHERE = replace(TARGET, machine=(("cpu", "another"),))
OTHERS = rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256))
(TRACE,) = draws(1)


def task(name: str, k: int = 64, target: Target = TARGET, context: str = "threads=1", **fields: Dispatch) -> KnownTask:
    """Return a task with a candidate; it is the nearer to the asked one, the nearer ``k`` is to 64."""
    dispatch = fields.get("dispatch", matmul_dispatch(128, 256, k))
    return measured_task([timed(TRACE)], dispatch, target=target, key=name, context=context)


def names(sources: tuple[Source, ...]) -> list[str]:
    return [source.task.key for source in sources]


def test_sources_are_of_the_family_the_nearest_first_and_at_most_five() -> None:
    shapes = [task(f"{k}", k) for k in (64, 128, 256, 512, 1024, 2048)]
    foreign = [task("types", dispatch=OTHERS), task("gpu", target=FIXED_CUDA)]
    found = chosen_sources([ASKED], {Place.SHIPPED: Corpus((*foreign, *reversed(shapes)))})
    assert names(found) == ["64", "128", "256", "512", "1024"]
    assert len(found) == SOURCES_PER_TASK


def test_what_this_machine_measured_comes_first_then_other_machines_then_what_is_shipped() -> None:
    corpora = {
        Place.RUN: Corpus((task("there", 64, ELSEWHERE), task("run", 1024))),
        Place.USER: Corpus((task("user", 512),)),
        Place.SHIPPED: Corpus((task("shipped", 128), task("shipped elsewhere", 256, ELSEWHERE))),
    }
    found = chosen_sources([ASKED], corpora)
    assert names(found) == ["user", "run", "there", "shipped", "shipped elsewhere"]
    assert [source.is_elsewhere(TARGET) for source in found] == [False, False, True, False, False]


def test_a_dispatch_is_one_source_that_of_this_machine_and_number_of_threads() -> None:
    several = replace(TARGET, cores=4)
    corpora = {
        Place.USER: Corpus((task("a", target=several, context="threads=4"), task("a"), task("b", target=ELSEWHERE))),
        Place.SHIPPED: Corpus((task("c"),)),
    }
    (found,) = chosen_sources([ASKED], corpora)
    assert (found.task.key, found.task.target) == ("a", TARGET)


def test_the_tasks_of_a_run_are_no_sources_in_its_own_store_nor_are_copies_of_their_records() -> None:
    own, further = task("own"), task("own", context="threads=2")
    stored = {Place.RUN: Corpus((own, further))}
    pairs = [("own", "threads=1")]
    (found,) = chosen_sources([ASKED], stored, pairs)
    assert found.task.context == "threads=2"
    copies = stored | {Place.USER: Corpus((own, further))}
    assert [source.place for source in chosen_sources([ASKED], copies, pairs)] == [Place.RUN]
    several = Asked(DISPATCH, replace(TARGET, cores=2))
    assert [source.task for source in chosen_sources([several], {Place.RUN: Corpus((own,))}, pairs)] == [own]
    (found,) = chosen_sources([ASKED], {Place.USER: Corpus((own,))}, pairs)
    assert found.place is Place.USER, "the run's own store has no records of it"


def test_a_source_of_several_tasks_is_there_once() -> None:
    corpus = Corpus((task("a", 32), task("b", 2048)))
    asked = [ASKED, Asked(matmul_dispatch(128, 256, 1024), TARGET)]
    assert sorted(names(chosen_sources(asked, {Place.USER: corpus}))) == ["a", "b"]


@dataclass(frozen=True)
class Unread(KnownTask):
    """A task that says when its candidates are read, or cannot be."""

    log: list[str]
    candidates: MeasuredTask | None = None
    error: str = ""

    @property
    def as_measured(self) -> MeasuredTask | None:
        self.log.append(self.key)
        if self.error:
            raise UserError(self.error)
        return self.candidates


def unread(name: str, k: int, log: list[str], *, empty: bool = False, error: str = "") -> Unread:
    dispatch = matmul_dispatch(128, 256, k)
    candidates = None if empty else measured_task([timed(TRACE)], dispatch, key=name)
    return Unread(name, name, dispatch, TARGET, "threads=1", log, candidates, error)


def test_only_the_nearest_are_read_and_those_without_candidates_are_passed_over() -> None:
    log = list[str]()
    known = [unread(f"{k}", k, log, empty=k == 128) for k in (64, 128, 256, 512, 1024, 2048, 4096)]
    assert names(chosen_sources([ASKED], {Place.USER: Corpus(tuple(known))})) == ["64", "256", "512", "1024", "2048"]
    assert "4096" not in log


def test_what_cannot_be_read_costs_a_note_in_the_users_store_and_among_the_shipped_alone() -> None:
    log, notes = list[str](), list[str]()
    broken = Corpus((unread("broken", 64, log, error="no gzip"), unread("whole", 128, log)))
    for place in (Place.USER, Place.SHIPPED):
        assert names(chosen_sources([ASKED, ASKED], {place: broken}, (), notes.append)) == ["whole"]
    assert len(notes) == 2
    assert all("no gzip" in note for note in notes)
    for place in (Place.RUN, Place.GIVEN):
        with pytest.raises(UserError, match="no gzip"):
            chosen_sources([ASKED], {place: broken}, (), notes.append)


def test_of_many_candidates_half_are_the_fastest_and_the_others_are_spread_evenly() -> None:
    measured = [timed(trace, ratio) for trace, ratio in zip(draws(40), range(40, 0, -1), strict=True)]
    kept = fastest_and_others(reversed(measured), 8)
    assert [each.ratio[0] for each in kept if each.ratio] == [40, 39, 38, 37, 36, 24, 13, 1]
    assert fastest_and_others(measured, 40) == tuple(measured)
    assert fastest_and_others([failed(draws(1)[0]), measured[1]], 9)[0] == measured[1], "failures come last"


def test_lots_have_equal_parts_and_what_small_ones_leave_goes_to_large_ones() -> None:
    assert equal_parts([200, 200, 200, 200], 600) == [150] * 4
    assert equal_parts([200, 10, 200], 300) == [145, 10, 145]
    assert equal_parts([5, 200], 600) == [5, 200]
    assert equal_parts([], 600) == []


def test_sources_have_as_many_candidates_as_a_run_may_learn_from() -> None:
    traces = draws(ROWS_PER_SOURCE + 20)
    shapes = [replace(task(f"{k}", k), measured=tuple(map(timed, traces))) for k in (64, 128, 256, 512, 1024)]  # type: ignore[call-arg]
    (alone,) = chosen_sources([ASKED], {Place.USER: Corpus((shapes[0],))})
    assert len(alone.measured.measured) == ROWS_PER_SOURCE
    found = chosen_sources([ASKED], {Place.USER: Corpus(tuple(shapes))})
    assert [len(source.measured.measured) for source in found] == [ROWS_PER_RUN // 5] * 5


def test_the_best_of_a_source_are_its_two_fastest_even_if_they_are_illegal_today() -> None:
    first, second, third = draws(3)
    gone = Trace("gone", ())
    measured = [timed(first, 3.0), failed(second), timed(gone, 4.0), timed(third, 2.0)]
    assert Source(Place.SHIPPED, measured_task(measured)).best == (gone, first)


def test_sources_are_kept_as_text_and_equal_sources_as_equal_text() -> None:
    found = chosen_sources([ASKED], {Place.USER: Corpus((task("a"),)), Place.SHIPPED: Corpus((task("b", 128),))})
    text = dump_sources(found)
    again = load_sources(text)
    assert [(each.place, each.task) for each in again] == [(each.place, each.task) for each in found]
    assert dump_sources(again) == text
    assert names(sources_of(ASKED, again)) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "no base64", "bm90IGd6aXA=", None, 5])
def test_a_text_that_holds_no_sources_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="sources that a run decided on cannot be read"):
        load_sources(text)
