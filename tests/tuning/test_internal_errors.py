"""A mistake of ours while a dispatch is evaluated costs that dispatch, and not the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from replayed_run import Heard, matmul_dispatch, program_search, searched, task_of
from speedups import timing

from mlir_sched.database import RecordStore
from mlir_sched.errors import UserError
from mlir_sched.evaluation.evaluator import Evaluator
from mlir_sched.outcome import Outcome, Verdict
from mlir_sched.search import RandomSearch
from mlir_sched.tasks.task import Task
from mlir_sched.tuning.options import TuneOptions
from mlir_sched.tuning.program_search import ProgramSearch
from mlir_sched.tuning.search_method import SearchMethod

SHAPES = {"good": (64, 96, 32), "bad": (128, 64, 48)}
TRIALS = 64


class Failing(Evaluator):
    """An evaluator that raises for the task named bad, after some of its candidates; scripts gain a factor of two."""

    def __init__(self, error: Exception, *, untuned: bool = False, after: int = 0) -> None:
        self.error, self.in_untuned, self.after = error, untuned, after
        self.measured: list[str] = []

    def untuned(self, task: Task, following: Sequence[Task] = ()) -> Outcome:
        del following
        if self.in_untuned and task.name == "bad":
            raise self.error
        return Outcome(timing(1e-3, 1.0), None, f"untuned {task.name}", verdict=Verdict.RIGHT)

    def evaluate(
        self, task: Task, scripts: Sequence[str], known: Mapping[str, Outcome]
    ) -> Iterator[tuple[int, Outcome]]:
        del known
        for index, script in reversed(list(enumerate(scripts))):
            if task.name == "bad" and self.measured.count("bad") == self.after:
                raise self.error
            self.measured.append(task.name)
            yield index, Outcome(timing(5e-4, 2.0), None, script, verdict=Verdict.RIGHT)


def searched_with(folder: Path, evaluator: Failing) -> tuple[ProgramSearch, list[str]]:
    """Return a search with the internal errors that it told."""
    heard = Heard()
    tasks = [task_of(name, matmul_dispatch(*shape)) for name, shape in SHAPES.items()]
    with RecordStore.open(folder / "records.sqlite") as store:
        options, method = TuneOptions(trials=TRIALS, round_size=8), SearchMethod(RandomSearch)
        search = program_search(options, store, tasks, heard=heard, method=method)
        return searched(search, evaluator), heard.internal_errors


@pytest.mark.parametrize("after", [0, 6])
def test_a_dispatch_whose_candidates_raise_is_given_up_and_the_others_go_on(after: int, tmp_path: Path) -> None:
    evaluator = Failing(ZeroDivisionError("planted"), after=after)
    program, texts = searched_with(tmp_path, evaluator)
    by_name = {search.task.name: search for search in program.searches}
    bad = by_name["bad"]
    assert program.tried == TRIALS
    assert bad.exhausted
    assert bad.history.failures() == Counter({"internal_error": bad.tried - after})
    assert Counter(evaluator.measured) == Counter({"good": TRIALS - bad.tried, "bad": after})
    assert texts
    for text in texts:
        assert "Traceback" in text
        assert text.endswith("ZeroDivisionError: planted\n")
    resumed, again = searched_with(tmp_path, Failing(RuntimeError("nothing is left to measure")))
    assert {s.task.name: s.history for s in resumed.searches} == {s.task.name: s.history for s in program.searches}
    assert again == texts


def test_a_dispatch_whose_untuned_code_raises_is_left_out(tmp_path: Path) -> None:
    program, (text,) = searched_with(tmp_path, Failing(KeyError("planted"), untuned=True))
    assert [search.task.name for search in program.searches] == ["good"]
    assert program.tried == TRIALS
    assert list(program.untunable.values()) == ["its untuned code meets an internal error: KeyError"]
    assert "KeyError: 'planted'" in text


@pytest.mark.parametrize("untuned", [True, False])
def test_what_no_dispatch_can_be_evaluated_with_ends_the_run(untuned: bool, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such flag"):
        searched_with(tmp_path, Failing(UserError("no such flag"), untuned=untuned))
