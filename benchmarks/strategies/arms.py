"""The arms: ways to search a task, each of which begins with something else. A further one is an entry of ``ARMS``."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from benchmarks.strategies.verdict import Gate
from mlir_sched.corpus import Corpus
from mlir_sched.corpus.sources import Asked, Place
from mlir_sched.models import SharedCostModel
from mlir_sched.search import Acquisition, EvolutionaryOptions, StrategyFactory
from mlir_sched.tuning.budget import PICKS
from mlir_sched.tuning.one_shot import Choice, without_search
from mlir_sched.tuning.search_method import SearchMethod
from mlir_sched.tuning.task_search import TaskSearch
from mlir_sched.tuning.transfer import Transfer

Begin: TypeAlias = Callable[[TaskSearch, SharedCostModel, Corpus, int], None]
"""Gives a search and its model what the corpus says of its task, before the first round of so many candidates."""

NO_GATE = Gate({})
TRANSFER = Gate({2: 0.7, 8: 0.88, 24: 0.95})
"""What the candidates of other shapes, measured on the same machine, have to be worth."""
TEMPLATES = Gate({8: 0.88})
"""What templates have to be worth, where nothing was measured before."""
ACTIVE = Gate(trials=0.9)
"""What another use of the spread of predictions has to save, in tables measured whole and in live searches."""
ONE_SHOT = Gate({64: 1.176})
"""What is asked of a run without a search: 0.85 of the speed of a search of 64 trials, over 12 tasks."""
SCRATCH = "scratch"
"""The arm that gates compare with."""


def with_nothing(search: TaskSearch, model: SharedCostModel, corpus: Corpus, size: int) -> None:
    """Begin as a task without a past."""
    del search, model, corpus, size


def with_others(*, rows: bool, starts: bool) -> Begin:
    """Return how to begin as a run does with the nearest tasks of the corpus.

    Args:
        rows: Whether the model learns from their candidates.
        starts: Whether their best candidates are tried in the first round.
    """

    def begin(search: TaskSearch, model: SharedCostModel, corpus: Corpus, size: int) -> None:
        asked = Asked(search.space.dispatch, search.space.target)
        transfer = Transfer.of([asked], {Place.SHIPPED: corpus}, rows=rows, starts=starts)
        transfer.teach(model)
        search.begin_with(transfer.starts_of(asked), size // 2)

    return begin


def with_templates(search: TaskSearch, model: SharedCostModel, corpus: Corpus, size: int) -> None:
    """Begin with what the transform modules say of the task, in half of the first round, as a run does."""
    del model, corpus
    search.guess(search.space.templates(), -(-size // 2))


def with_all(search: TaskSearch, model: SharedCostModel, corpus: Corpus, size: int) -> None:
    """Begin with templates and with the nearest tasks of the corpus, as a run does that is asked for both."""
    with_templates(search, model, corpus, size)
    with_others(rows=True, starts=True)(search, model, corpus, size)


def without_trials(search: TaskSearch, model: SharedCostModel, corpus: Corpus, size: int) -> None:
    """Choose all candidates as a run with 0 trials does, from the nearest tasks of the corpus and from templates."""
    asked = Asked(search.space.dispatch, search.space.target)
    Transfer.of([asked], {Place.SHIPPED: corpus}).teach(model)
    Choice.of(search, search.space.templates(), size, predicts=model.fit_for_good())


@dataclass(frozen=True)
class Arm:
    """A way to search.

    Attributes:
        what: What it is, for the help and the page.
        begin: What happens before the first round.
        strategy: The search strategy, by name or as what makes it.
        cost_model: Name of the cost model.
        most: Its candidates, in one round, where it ends before the others; None where it does not.
        gate: What is asked of it, against :data:`SCRATCH`.
    """

    what: str
    begin: Begin = with_nothing
    strategy: str | StrategyFactory = "evolutionary"
    cost_model: str = "xgboost"
    most: int | None = None
    gate: Gate = NO_GATE


ARMS: Mapping[str, Arm] = {
    SCRATCH: Arm("the default search, which begins with random draws"),
    "random": Arm("random draws alone", strategy="random"),
    "rows": Arm("the model learns from near tasks", with_others(rows=True, starts=False), gate=TRANSFER),
    "starts": Arm("begins with the best of near tasks", with_others(rows=False, starts=True), gate=TRANSFER),
    "transfer": Arm("rows and starts", with_others(rows=True, starts=True), gate=TRANSFER),
    "templates": Arm("begins with what follows from registers and caches", with_templates, gate=TEMPLATES),
    "all": Arm("templates and transfer", with_all, gate=TRANSFER),
    "mean": Arm(
        "scores candidates by the mean prediction alone",
        strategy=EvolutionaryOptions(acquisition=Acquisition.MEAN),
        gate=ACTIVE,
    ),
    "ping_pong": Arm(
        "scores candidates by the spread of predictions after a round that the model ranked badly, else by the mean",
        strategy=EvolutionaryOptions(acquisition=Acquisition.PING_PONG),
        gate=ACTIVE,
    ),
    "quantile": Arm("has a model of quantiles", cost_model="quantile", gate=ACTIVE),
    "oneshot": Arm(
        f"no search: the {PICKS} that the model of near tasks and the templates choose",
        without_trials,
        without_search(SearchMethod()).strategy,
        most=PICKS,
        gate=ONE_SHOT,
    ),
}
"""The arms by name."""
