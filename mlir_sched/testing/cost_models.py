"""The tests that every cost model must pass; subclass them for a model of your own (pytest collects the class).

::

    class TestNearest(CostModelTests):
        def make(self):
            return Nearest()
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from mlir_sched.models.cost_model import CostModel, Feed, Measured, ModelTask, Rows
from mlir_sched.search.strategy import RandomSearch
from mlir_sched.search.synthetic_space import SyntheticMatmulSpace

SPACES = (SyntheticMatmulSpace(64, 48, 32), SyntheticMatmulSpace(96, 64, 64))
"""The spaces of the tasks that a model is tried on."""


def measured(model: CostModel, count: int, seed: int = 0) -> list[Measured]:
    """Return candidates of two tasks as a model reads them, failures among them."""
    return [_measured(model, group, count, seed) for group in range(len(SPACES))]


def _measured(model: CostModel, group: int, count: int, seed: int) -> Measured:
    space = SPACES[group]
    traces = RandomSearch(space, np.random.default_rng(seed)).suggest(count)
    seconds = np.array([space.seconds(trace) or np.inf for trace in traces])
    features = space.features(traces) if Feed.FEATURES in model.feeds else np.empty((len(traces), 0))
    fed = tuple(traces) if Feed.TRACES in model.feeds else ()
    graphs = tuple(space.graphs(traces)) if Feed.GRAPHS in model.feeds else ()
    return Measured(Rows(ModelTask(group), features, fed, graphs), seconds.min(initial=np.inf) / seconds)


class CostModelTests(ABC):
    """The contract of ``CostModel`` as tests."""

    @abstractmethod
    def make(self) -> CostModel:
        """Return a new model."""

    def test_a_new_model_refuses_to_predict_and_to_save(self) -> None:
        """Before a fit the model says that it is not fitted, and raises ``RuntimeError``."""
        model = self.make()
        assert not model.fitted
        with TemporaryDirectory() as folder:
            _must_raise(RuntimeError, lambda: model.predict(measured(model, 4)[0].rows))
            _must_raise(RuntimeError, lambda: model.save(Path(folder) / "model"))
            assert not list(Path(folder).iterdir())

    def test_every_row_has_a_finite_score(self) -> None:
        """A model that is fitted predicts one finite score per row, and an uncertainty of at least 0."""
        model = self._fitted()
        for count in (1, 50):
            for each in measured(model, count, seed=1):
                scores, spread = model.predict_with_spread(each.rows)
                assert scores.shape == spread.shape == model.predict(each.rows).shape == (len(each.rows),)
                assert np.isfinite(scores).all()
                assert (spread >= 0).all()

    def test_the_same_calls_give_the_same_scores(self) -> None:
        """Two models that are fitted on the same rows agree."""
        assert np.array_equal(self._scores(self._fitted()), self._scores(self._fitted()))

    def test_a_fit_forgets_earlier_fits(self) -> None:
        """What a model learnt first has no part in what it predicts after another fit."""
        model = self.make()
        model.fit(measured(model, 60, seed=2))
        model.fit(measured(model, 100))
        assert np.array_equal(self._scores(model), self._scores(self._fitted()))

    def test_little_to_learn_from_is_no_error(self) -> None:
        """A model declines or learns, and predicts where it says that it learnt."""
        for count in (1, 2):
            model = self.make()
            model.fit(measured(model, count))
            if model.fitted:
                self._scores(model)

    def test_tasks_where_all_failed_are_no_error(self) -> None:
        """Rows whose throughput is 0 are rows as any others."""
        model = self.make()
        model.fit([Measured(each.rows, np.zeros(len(each.rows))) for each in measured(model, 50)])

    def test_a_loaded_model_predicts_as_the_saved_one(self) -> None:
        """``save`` writes one file, from which ``load`` makes a model that is fitted."""
        saved, loaded = self._fitted(), self.make()
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model"
            saved.save(path)
            assert list(Path(folder).iterdir()) == [path]
            loaded.load(path)
        assert loaded.fitted
        assert np.array_equal(self._scores(loaded), self._scores(saved))

    def test_a_file_of_another_kind_is_refused(self) -> None:
        """``load`` raises ``ValueError`` for a file that ``save`` of this kind did not write."""
        for text in ("", "{}", "[]", '{"format": "other"}'):
            with TemporaryDirectory() as folder:
                path = Path(folder) / "model"
                path.write_text(text)
                _must_raise(ValueError, partial(self.make().load, path))

    def _fitted(self) -> CostModel:
        model = self.make()
        model.fit(measured(model, 100))
        assert model.fitted
        return model

    def _scores(self, model: CostModel) -> NDArray[np.float64]:
        return np.concatenate([model.predict(each.rows) for each in measured(model, 50, seed=1)])


def _must_raise(kind: type[Exception], call: Callable[[], object]) -> None:
    try:
        call()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected")
