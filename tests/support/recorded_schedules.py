"""Schedules of a product with an epilogue whose emitter keeps what is emitted as text."""

from __future__ import annotations

import numpy as np
import rule_ops
from fixed_targets import FIXED
from recording_emitter import RecordingEmitter

from mlir_sched.payload import Dispatch
from mlir_sched.trace import Recorder
from mlir_sched.transform_scripts import matchers
from mlir_sched.transform_scripts.schedule import Schedule
from mlir_sched.transform_scripts.structures import Contraction

DISPATCH = rule_ops.dispatch(rule_ops.matmul(12), rule_ops.epilogue("f32", ("arith.addf",)))
"""A fill, a product of 8x12 by 12x16 and an element-wise op on its result."""


def started(dispatch: Dispatch = DISPATCH) -> tuple[Schedule, RecordingEmitter, Contraction]:
    emitter = RecordingEmitter()
    s = Schedule(dispatch, FIXED, Recorder(rng=np.random.default_rng(0)), emitter)
    mm = matchers.contraction(dispatch.ops[1], dispatch)
    assert mm is not None
    return s, emitter, mm
