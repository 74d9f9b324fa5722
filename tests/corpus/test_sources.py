"""Sources: which known tasks say something of the tasks of a run, and with how many of their candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import rule_ops
from fixed_targets import FIXED_CUDA
from measured_tasks import draws, failed, measured_task, timed
from replayed_run import TARGET, matmul_dispatch

from mlir_sched.corpus import Corpus, MeasuredTask
from mlir_sched.corpus.choosing import FEW, ROWS_PER_RUN, ROWS_PER_SOURCE, chosen_sources, equal_parts
from mlir_sched.corpus.known_task import KnownTask
from mlir_sched.corpus.sources import (
    SOURCES_PER_TASK,
    Asked,
    Place,
    Source,
    dump_sources,
    fastest_and_others,
    load_sources,
    sources_of,
)
from mlir_sched.database.engine import StoreOutageError
from mlir_sched.errors import UserError
from mlir_sched.payload import Dispatch
from mlir_sched.targets.target import Target
from mlir_sched.trace import Trace

DISPATCH = matmul_dispatch(128, 256, 64)
ASKED = Asked(DISPATCH, TARGET)
ELSEWHERE = replace(TARGET, machine=(("cpu", "another"),))
OTHERS = rule_ops.dispatch(rule_ops.matmul(64, "f16", m=128, n=256))


def task(name: str, k: int = 64, target: Target = TARGET, context: str = "threads=1", **fields: Dispatch) -> KnownTask:
    """Return a task with a candidate; it is the nearer to the asked one, the nearer ``k`` is to 64."""
    dispatch = fields.get("dispatch", matmul_dispatch(128, 256, k))
    return measured_task(map(timed, draws(1, dispatch, target)), dispatch, target=target, key=name, context=context)


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
    candidates = None if empty else measured_task(map(timed, draws(FEW, dispatch)), dispatch, key=name)
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


def test_what_another_store_has_of_a_task_of_the_run_counts_where_the_runs_own_has_no_candidate() -> None:
    """An earlier run timed the untuned code alone."""
    empty, there = unread("own", 64, [], empty=True), task("own")
    corpora = {Place.RUN: Corpus((empty,)), Place.USER: Corpus((there,))}
    for own in ([("own", "threads=1")], []):
        (found,) = chosen_sources([ASKED], corpora, own)
        assert found.place is Place.USER


def test_a_store_that_is_held_is_waited_for_once() -> None:
    @dataclass(frozen=True)
    class Held(Unread):
        @property
        def as_measured(self) -> MeasuredTask | None:
            self.log.append(self.key)
            raise StoreOutageError("held", is_held=True)

    log, notes = list[str](), list[str]()
    held = [Held(f"{k}", "", matmul_dispatch(128, 256, k), TARGET, "threads=1", log) for k in (64, 128, 256)]
    corpora = {Place.USER: Corpus(tuple(held)), Place.SHIPPED: Corpus((task("shipped", 512),))}
    assert names(chosen_sources([ASKED, Asked(DISPATCH, ELSEWHERE)], corpora, (), notes.append)) == ["shipped"]
    assert len(log) == len(notes) == 1


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
    def many(k: int) -> MeasuredTask:
        dispatch = matmul_dispatch(128, 256, k)
        return measured_task(map(timed, draws(ROWS_PER_SOURCE + 20, dispatch)), dispatch, key=f"{k}")

    shapes = [many(k) for k in (64, 128, 256, 512, 1024)]
    (alone,) = chosen_sources([ASKED], {Place.USER: Corpus((shapes[0],))})
    assert len(alone.measured.measured) == ROWS_PER_SOURCE
    found = chosen_sources([ASKED], {Place.USER: Corpus(tuple(shapes))})
    assert [len(source.measured.measured) for source in found] == [ROWS_PER_RUN // 5] * 5


def test_the_best_of_a_source_are_its_two_fastest_of_todays_sketches_even_if_they_are_illegal() -> None:
    first, second, third = draws(3)
    illegal = Trace(first.sketch, first.decisions[1:])
    gone = timed(Trace("gone", ()), 5.0)
    measured = [timed(first, 3.0), failed(second), gone, timed(illegal, 4.0), timed(third, 2.0)]
    assert Source(Place.SHIPPED, measured_task(measured)).best == (illegal, first)


def test_a_task_none_of_whose_fastest_candidates_is_legal_leaves_its_place_to_others() -> None:
    legal = draws(2, matmul_dispatch(128, 256, 128))
    gone = [timed(Trace(each.sketch, each.decisions[1:])) for each in draws(9, matmul_dispatch(128, 256, 128))]
    kinds = {
        "gone": gone,
        "only failures": map(failed, legal),
        "too late": [*gone, timed(legal[0], 1.0)],
        "one": [*gone[:7], timed(legal[0], 1.0)],
    }
    dispatch = matmul_dispatch(128, 256, 128)
    for name, candidates in kinds.items():
        nearest, other = measured_task(candidates, dispatch, key=name), task("other", 256)
        found = chosen_sources([ASKED], {Place.USER: Corpus((nearest, other))})
        assert names(found) == (["one", "other"] if name == "one" else ["other"])


def test_sources_are_kept_as_text_and_equal_sources_as_equal_text() -> None:
    found = chosen_sources([ASKED], {Place.USER: Corpus((task("a"),)), Place.SHIPPED: Corpus((task("b", 128),))})
    found = (found[0], replace(found[1], teaches=False))
    text = dump_sources(found)
    again = load_sources(text)
    assert [(each.place, each.task, each.teaches) for each in again] == [(e.place, e.task, e.teaches) for e in found]
    assert dump_sources(again) == text
    assert names(sources_of(ASKED, again)) == ["a", "b"]


@pytest.mark.parametrize("text", ["", "no base64", "bm90IGd6aXA=", None, 5])
def test_a_text_that_holds_no_sources_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="sources that a run decided on cannot be read"):
        load_sources(text)
