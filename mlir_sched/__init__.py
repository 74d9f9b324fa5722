"""mlir-sched: probabilistic schedules for MLIR programs, tuned on the user's machine and compiled by IREE.

Everything named here is imported when it is first used, so that ``import mlir_sched`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir_sched.database import RecordStore
    from mlir_sched.database.record import Record
    from mlir_sched.deployment import TunedCompilation, compile_tuned, relocate
    from mlir_sched.errors import IllegalTraceError, MlirSchedError, ScriptError, UserError
    from mlir_sched.models import CostModel, Measured, Rows, XGBoostOptions
    from mlir_sched.outcome import Outcome, Timing
    from mlir_sched.payload import Dispatch, LinalgOp, OpKind
    from mlir_sched.pipeline import tune
    from mlir_sched.replaying.replay import replay
    from mlir_sched.replaying.replay_result import ReplayResult
    from mlir_sched.search import EvolutionaryOptions, Observation, SearchStrategy, TaskProgress, TaskScheduler
    from mlir_sched.space.design_space import DesignSpace
    from mlir_sched.space.space import Space
    from mlir_sched.targets import detect_target
    from mlir_sched.targets.target import Target
    from mlir_sched.trace import Decision, Trace
    from mlir_sched.transform_scripts import matchers, patterns, structures
    from mlir_sched.transform_scripts.module import ScheduleModule, Sketch, Stage, Step, Template, TransformModule
    from mlir_sched.transform_scripts.schedule import Schedule
    from mlir_sched.transform_scripts.script.reading import parse_traces
    from mlir_sched.transform_scripts.structures import Loop
    from mlir_sched.tuned_folder.result import DispatchResult, ProgramResult, TuneResult
    from mlir_sched.tuning.callbacks import Trial
    from mlir_sched.tuning.options import TuneOptions
    from mlir_sched.tuning.progress import Progress

__version__ = "0.1.0"
"""The version of mlir-sched, which records, libraries and summaries name."""

__all__ = [
    "CostModel",
    "Decision",
    "DesignSpace",
    "Dispatch",
    "DispatchResult",
    "EvolutionaryOptions",
    "IllegalTraceError",
    "LinalgOp",
    "Loop",
    "Measured",
    "MlirSchedError",
    "Observation",
    "OpKind",
    "Outcome",
    "ProgramResult",
    "Progress",
    "Record",
    "RecordStore",
    "ReplayResult",
    "Rows",
    "Schedule",
    "ScheduleModule",
    "ScriptError",
    "SearchStrategy",
    "Sketch",
    "Space",
    "Stage",
    "Step",
    "Target",
    "TaskProgress",
    "TaskScheduler",
    "Template",
    "Timing",
    "Trace",
    "TransformModule",
    "Trial",
    "TuneOptions",
    "TuneResult",
    "TunedCompilation",
    "UserError",
    "XGBoostOptions",
    "__version__",
    "compile_tuned",
    "detect_target",
    "matchers",
    "parse_traces",
    "patterns",
    "relocate",
    "replay",
    "structures",
    "tune",
]

_EXPORTS = {
    "database": ("RecordStore",),
    "database.record": ("Record",),
    "deployment": ("TunedCompilation", "compile_tuned", "relocate"),
    "errors": ("IllegalTraceError", "MlirSchedError", "ScriptError", "UserError"),
    "outcome": ("Outcome", "Timing"),
    "payload": ("Dispatch", "LinalgOp", "OpKind"),
    "pipeline": ("tune",),
    "replaying.replay": ("replay",),
    "replaying.replay_result": ("ReplayResult",),
    "models": ("CostModel", "Measured", "Rows", "XGBoostOptions"),
    "search": ("EvolutionaryOptions", "Observation", "SearchStrategy", "TaskProgress", "TaskScheduler"),
    "space.design_space": ("DesignSpace",),
    "space.space": ("Space",),
    "targets": ("detect_target",),
    "targets.target": ("Target",),
    "trace": ("Decision", "Trace"),
    "transform_scripts.module": ("ScheduleModule", "Sketch", "Stage", "Step", "Template", "TransformModule"),
    "transform_scripts.schedule": ("Schedule",),
    "transform_scripts.script.reading": ("parse_traces",),
    "transform_scripts.structures": ("Loop",),
    "tuned_folder.result": ("DispatchResult", "ProgramResult", "TuneResult"),
    "tuning.callbacks": ("Trial",),
    "tuning.options": ("TuneOptions",),
    "tuning.progress": ("Progress",),
}
_MODULES = {name: f"transform_scripts.{name}" for name in ("matchers", "patterns", "structures")}
_HOME = {name: module for module, names in _EXPORTS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    elif name in _HOME:
        value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
