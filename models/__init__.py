"""Cost models and their metrics: arrays in, arrays out; nothing here knows MLIR, IREE or traces."""

from mlir_sched.models.cost_model import CostModel
from mlir_sched.models.random_model import RandomModel
from mlir_sched.models.shared_model import SharedCostModel
from mlir_sched.models.xgboost_model import XGBoostModel, XGBoostOptions

__all__ = ["CostModel", "RandomModel", "SharedCostModel", "XGBoostModel", "XGBoostOptions"]
