"""Our own targets keep the contract that is published for targets of other packages."""

from __future__ import annotations

import pytest

from mlir_sched.targets import TARGETS
from mlir_sched.targets.kind import TargetKind
from mlir_sched.testing import TargetTests

pytestmark = pytest.mark.promise


class TestLlvmCpu(TargetTests):
    name = "llvm-cpu"

    def make(self) -> TargetKind:
        return TARGETS[self.name]


class TestCuda(TargetTests):
    name = "cuda"
    device = "sm_80"

    def make(self) -> TargetKind:
        return TARGETS[self.name]
