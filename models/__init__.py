"""Cost models and their metrics, on plain data: this package needs neither MLIR nor IREE."""

from mlir_sched.models.cost_model import CostModel, Feed, LoopGraph, Measured, ModelTask, Rows
from mlir_sched.models.quantile_model import QuantileModel
from mlir_sched.models.random_model import RandomModel
from mlir_sched.models.shared_model import SharedCostModel, TaskModel
from mlir_sched.models.xgboost_model import XGBoostModel, XGBoostOptions

__all__ = [
    "CostModel",
    "Feed",
    "LoopGraph",
    "Measured",
    "ModelTask",
    "QuantileModel",
    "RandomModel",
    "Rows",
    "SharedCostModel",
    "TaskModel",
    "XGBoostModel",
    "XGBoostOptions",
]
