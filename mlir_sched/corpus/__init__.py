"""Measured candidates of many dispatches: what is known of a new one before its first candidate."""

from mlir_sched.corpus.corpus import Corpus
from mlir_sched.corpus.measured_task import MeasuredTask, Measurement, Origin

__all__ = ["Corpus", "MeasuredTask", "Measurement", "Origin"]
