"""Cost models and their metrics, on plain arrays: this package knows neither MLIR and IREE nor traces."""

from mlir_sched.models.cost_model import CostModel
from mlir_sched.models.random_model import RandomModel
from mlir_sched.models.shared_model import SharedCostModel
from mlir_sched.models.xgboost_model import XGBoostModel, XGBoostOptions

__all__ = ["CostModel", "RandomModel", "SharedCostModel", "XGBoostModel", "XGBoostOptions"]
