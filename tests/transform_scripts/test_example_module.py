"""The example of a module of a user's own keeps the published contract, on the CPU and on a GPU."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping

import pytest
from folders import ROOT
from payloads import PAYLOADS
from vulkan import require_vulkan

from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.testing import ModuleTests
from mlir_sched.transform_scripts.module import TransformModule

pytestmark = pytest.mark.promise


class TestExample(ModuleTests):
    def module(self) -> TransformModule:
        return example_module()

    def models(self) -> Mapping[str, str]:
        return {name: PAYLOADS[name].text for name in ("matmul", "matmul_100")}

    def test_it_comes_first_in_its_space(self) -> None:
        target = detect_target("llvm-cpu", 1)
        names = [module.name for module in Space.default(target).modules]
        assert [module.name for module in self.space(target).modules] == ["outer_product", *names]


@pytest.mark.alone
@pytest.mark.usefixtures("device")
class TestExampleOnVulkan(ModuleTests):
    target = "vulkan"

    def module(self) -> TransformModule:
        return example_module()

    def models(self) -> Mapping[str, str]:
        return {"matmul": PAYLOADS["matmul"].text}


@pytest.fixture
def device() -> None:
    require_vulkan()


def example_module() -> TransformModule:
    """Return the example of a user's module, which is written for CPUs and GPUs alike."""
    spec = importlib.util.spec_from_file_location("custom", ROOT / "examples" / "custom_transform_module.py")
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    made = example.OuterProduct()
    assert isinstance(made, TransformModule)
    return made
