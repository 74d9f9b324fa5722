"""The arms: ways to search a task, each of which begins with something else. A further one is an entry of ``ARMS``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.strategies.verdict import Gate
from mlir_sched.corpus import Corpus
from mlir_sched.models import SharedCostModel
from mlir_sched.tuning.task_search import TaskSearch

Begin: TypeAlias = Callable[[TaskSearch, SharedCostModel, Corpus], None]
"""Gives a search and its model what the corpus says of its task, before the first round."""

NO_GATE = Gate({})
SCRATCH = "scratch"
"""The arm that gates compare with."""


def with_nothing(search: TaskSearch, model: SharedCostModel, corpus: Corpus) -> None:
    """Begin as a task without a past."""
    del search, model, corpus


@dataclass(frozen=True)
class Arm:
    """A way to search.

    Attributes:
        what: What it is, for the help and the page.
        begin: What happens before the first round.
        strategy: Name of the search strategy.
        gate: What is asked of it, against :data:`SCRATCH`.
    """

    what: str
    begin: Begin = with_nothing
    strategy: str = "evolutionary"
    gate: Gate = NO_GATE


ARMS: Mapping[str, Arm] = {
    SCRATCH: Arm("the default search, which begins with random draws"),
    "random": Arm("random draws alone", strategy="random"),
}
"""The arms by name."""
