"""Every transform module keeps the contract that is published for modules of users (``mlir_sched.testing``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import pytest
from attention_programs import in_one_dispatch
from contraction_payloads import dot_products, matmul
from convolution_payloads import CONVOLUTIONS, POOLINGS, padded_network
from folders import TESTS
from payload_text import Payload
from payloads import (
    PAYLOADS,
    elementwise_chain,
    every_other_pixel,
    independent_ops,
    permuted_add,
    rows_of_a_table,
    transpose,
    widened_bytes,
)
from reduction_payloads import REDUCTIONS as BY_THREADS
from reduction_payloads import UNEVEN
from several_results_payloads import SEVERAL_RESULTS
from vulkan import require_vulkan

from mlir_sched.payload import Dispatch
from mlir_sched.sampling import Value
from mlir_sched.space.space import Space
from mlir_sched.targets import detect_target
from mlir_sched.targets.target import Target
from mlir_sched.tasks import TASK_FLAGS
from mlir_sched.testing import ModuleTests
from mlir_sched.transform_scripts import gpu, llvm_cpu, vulkan
from mlir_sched.transform_scripts.module import Template, TransformModule

pytestmark = pytest.mark.landing

CONTRACTIONS = (
    *("matmul", "matmul_uneven", "matmul_100", "matmul_accumulating", "matmul_i8", "matmul_f16", "matmul_bf16"),
    *("batch_matmul_bt", "vecmat", "matvec", "bias_gelu", "two_epilogues"),
    *("channels_first_product", "product_to_channels_first", "product_of_images"),
    *("below_diagonal_product", "below_diagonal_product_uneven", "product_over_heads", "product_over_heads_uneven"),
)
ON_VULKAN = tuple(name for name in CONTRACTIONS if name != "matmul_bf16")
"""IREE 3.13 does not compile the product in bf16 for lavapipe, with or without a script."""
REDUCTIONS = ("row_sum", "softmax", "layernorm", "scale_rows", "sum_of_squares", "matvec")
ELEMENTWISE = ("elementwise_chain", "transpose", "vector_add", "below_diagonal", "sine_and_cosine")
OF_OTHER_STAGES = ("matmul_uneven", "scale_rows", "transpose")
CONVOLUTIONS_ON_VULKAN = (
    *("1d", "2d_transposed_result", "2d_accumulating", "2d_dilated", "2d_strided", "2d_few_channels", "2d_i8"),
    *("2d_nchw", "2d_nchw_strided", "2d_nchw_filters_inside", "3d"),
)
GROUPED_ON_VULKAN = ("grouped_ngchw", "depthwise_strided", "depthwise_nchw", "depthwise_multiplier")
ON_VULKAN_OF_OTHER_STAGES = ("bias_gelu", "transpose")
"""Programs for the modules that distribute or lower."""
ALSO_IN_TURNS = ("columns_f16", "maxima", "mean_nhwc", "softmax_129", "layernorm_30")
EDGES = ("vector_add_uneven", "every_other_pixel", "below_diagonal_uneven")


class OnPayloads(ModuleTests):
    """Tests a module on programs of the tests."""

    payloads: ClassVar[Mapping[str, Payload]] = {}

    def models(self) -> Mapping[str, str]:
        return {name: payload.text for name, payload in self.payloads.items()}

    def flags(self, model: str) -> tuple[str, ...]:
        return self.payloads[model].flags

    @pytest.mark.nightly
    def test_candidates_are_applied_and_right(self) -> None:
        super().test_candidates_are_applied_and_right()

    def test_a_candidate_per_sketch_of_one_model_is_applied_and_right(self) -> None:
        name = next(iter(self.payloads))
        one = type("One", (type(self),), {"payloads": {name: self.payloads[name]}, "candidates": 1})()
        ModuleTests.test_candidates_are_applied_and_right(one)


class TestContraction(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in CONTRACTIONS}
    may_be_refused = 0.02  # 0 of about 120 were

    def module(self) -> TransformModule:
        return llvm_cpu.ContractionTiling()


@pytest.mark.long
class TestConvolution(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = CONVOLUTIONS
    candidates = 2
    may_be_refused = 0.05  # 0 of 413 were

    def module(self) -> TransformModule:
        return llvm_cpu.ConvolutionTiling()


class TestReduction(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {
        **{name: PAYLOADS[name] for name in REDUCTIONS},
        **{name: PAYLOADS[name] for name in ("moments", "moments_uneven")},
        "independent_ops": independent_ops(64, 128),
    }

    def module(self) -> TransformModule:
        return llvm_cpu.ReductionTiling()


class TestAttention(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {
        "heads": Payload(in_one_dispatch(3, 24, 64, 32)),
        "one_head": Payload(in_one_dispatch(1, 40, 192, 16)),
    }

    def module(self) -> TransformModule:
        return llvm_cpu.AttentionTiling()


class TestElementwise(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {
        **{name: PAYLOADS[name] for name in (*ELEMENTWISE, *EDGES)},
        "every_other_pixel_uneven": every_other_pixel(6, 6, 41),
        "rows_of_a_table": rows_of_a_table(100, 12, 64),
        "rows_of_a_table_uneven": rows_of_a_table(30, 7, 41),
    }

    def module(self) -> TransformModule:
        return llvm_cpu.ElementwiseTiling()


class TestSeveralResults(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = SEVERAL_RESULTS

    def module(self) -> TransformModule:
        return llvm_cpu.SeveralResultsTiling()


class TestLoweringConfig(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in (*CONTRACTIONS, "row_sum")}

    def module(self) -> TransformModule:
        return llvm_cpu.LoweringConfig()


@pytest.mark.usefixtures("instruction")
class DotProducts(OnPayloads):
    feature: ClassVar[str]

    def module(self) -> TransformModule:
        return llvm_cpu.DotProduct()


class TestDotProductOfBf16(DotProducts):
    payloads: ClassVar[Mapping[str, Payload]] = dot_products("bf16")
    feature = "+avx512bf16"


class TestDotProductOfBytes(DotProducts):
    payloads: ClassVar[Mapping[str, Payload]] = dot_products("i8")
    feature = "+avx512vnni"


class TestParallelDistribution(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in OF_OTHER_STAGES}

    def module(self) -> TransformModule:
        return llvm_cpu.ParallelDistribution()


class TestLowering(OnPayloads):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in OF_OTHER_STAGES}

    def module(self) -> TransformModule:
        return llvm_cpu.Lowering()


@pytest.mark.alone  # a software device computes on all cores, and takes four times as long beside other tests
@pytest.mark.usefixtures("device")
class OnVulkan(OnPayloads):
    target = "vulkan"


class TestVulkanContraction(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in ON_VULKAN}
    candidates = 2

    def module(self) -> TransformModule:
        return gpu.ContractionTiling()


class TestVulkanSharedContraction(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {
        **{name: PAYLOADS[name] for name in ("matmul", "matmul_f16", "batch_matmul_bt", "bias_gelu", "two_epilogues")},
        "below_diagonal_product": PAYLOADS["below_diagonal_product"],
        "matmul_large": matmul(256, 128, 192),
    }
    candidates = 2

    def module(self) -> TransformModule:
        return gpu.SharedContraction()


class TestVulkanConvolution(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: CONVOLUTIONS[name] for name in CONVOLUTIONS_ON_VULKAN}
    candidates = 2

    def module(self) -> TransformModule:
        return gpu.ConvolutionTiling()


class TestVulkanGroupsAndPoolings(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: CONVOLUTIONS[name] for name in GROUPED_ON_VULKAN} | POOLINGS
    candidates = 2

    def module(self) -> TransformModule:
        return gpu.ConvolutionTiling()


class TestVulkanPaddedNetwork(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {"padded_network": padded_network()}

    def module(self) -> TransformModule:
        return gpu.ConvolutionTiling()


class TestVulkanElementwise(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in ELEMENTWISE}

    def module(self) -> TransformModule:
        return gpu.ElementwiseTiling()


class TestVulkanLinearElementwise(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {
        **{name: PAYLOADS[name] for name in (*ELEMENTWISE, "vector_add_uneven") if name != "below_diagonal"},
        "transpose_prime": transpose(97, 61),
        "chain_prime": elementwise_chain(13, 509),
        "permuted_4d": permuted_add(3, 5, 7, 11),
        "widened_bytes": widened_bytes(64, 96),
    }
    candidates = 2

    def module(self) -> TransformModule:
        return gpu.LinearElementwise()


class TestVulkanSubgroupReduction(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in REDUCTIONS}

    def module(self) -> TransformModule:
        return vulkan.SubgroupReduction()


class TestVulkanReduction(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = BY_THREADS
    candidates = 1

    def module(self) -> TransformModule:
        return gpu.ReductionTiling()


class TestVulkanLinearReduction(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = UNEVEN | {name: BY_THREADS[name] for name in ALSO_IN_TURNS}
    candidates = 2

    def module(self) -> TransformModule:
        return gpu.LinearReduction()


class TestVulkanLoweringConfig(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {
        name: PAYLOADS[name] for name in (*ON_VULKAN, *ELEMENTWISE, "every_other_pixel")
    }
    candidates = 2

    def module(self) -> TransformModule:
        return vulkan.LoweringConfig()


class TestVulkanPromotedConfig(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {
        name: PAYLOADS[name] for name in ("matmul", "matmul_f16", "batch_matmul_bt", "bias_gelu", "two_epilogues")
    }
    candidates = 2

    def module(self) -> TransformModule:
        return vulkan.PromotedConfig()


class TestThreadDistribution(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in ON_VULKAN_OF_OTHER_STAGES}

    def module(self) -> TransformModule:
        return gpu.ThreadDistribution()


class TestThreadDistributionOfAnExportedNetwork(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {
        "convolutional": Payload((TESTS / "exported" / "convolutional.mlir").read_text(), TASK_FLAGS)
    }
    candidates = 1

    def module(self) -> TransformModule:
        return gpu.ThreadDistribution()


class TestVulkanLowering(OnVulkan):
    payloads: ClassVar[Mapping[str, Payload]] = {name: PAYLOADS[name] for name in ON_VULKAN_OF_OTHER_STAGES}

    def module(self) -> TransformModule:
        return vulkan.Lowering()


@pytest.fixture
def device() -> None:
    require_vulkan()


@pytest.fixture
def instruction(request: pytest.FixtureRequest, here: Target) -> None:
    """Skip a test where this CPU lacks the instruction of the test's class."""
    if request.cls.feature not in here.description:
        pytest.skip(f"this CPU lacks {request.cls.feature}")


def test_a_module_that_breaks_the_contract_is_found() -> None:
    class Lossy(llvm_cpu.ElementwiseTiling):
        def schedule(self, s, found):  # type: ignore[no-untyped-def]
            super().schedule(s, found)
            s.notes["unrolled_vectors"] = float("nan")

    class Tests(OnPayloads):
        payloads: ClassVar[Mapping[str, Payload]] = {"vector_add": PAYLOADS["vector_add"]}

        def module(self) -> TransformModule:
            return Lossy()

    Tests().test_every_model_is_scheduled()
    with pytest.raises(AssertionError, match="vector_add: elementwise"):
        Tests().test_features_are_finite()

    class Guessing(llvm_cpu.ElementwiseTiling):
        def __init__(self, values: Mapping[str, Value]) -> None:
            self.values = values

        def templates(self, found: object, dispatch: Dispatch, target: Target) -> tuple[Template, ...]:
            return (Template("", self.values),)

    class Illegal(Tests):
        def module(self) -> TransformModule:
            return Guessing({"vector": "wide"})

    class Misnamed(Tests):
        def module(self) -> TransformModule:
            return Guessing({"vectors": (16,)})

    with pytest.raises(AssertionError, match=r"vector_add: elementwise with .*'wide'.* is not in the support"):
        Illegal().test_templates_are_legal()
    with pytest.raises(AssertionError, match=r"vector_add: no \['vectors'\] is drawn"):
        Misnamed().test_templates_are_legal()

    class Elsewhere(Tests):
        payloads: ClassVar[Mapping[str, Payload]] = {"softmax": PAYLOADS["softmax"]}

    with pytest.raises(AssertionError):
        Elsewhere().test_every_model_is_scheduled()


def test_the_space_of_a_known_module_has_it_in_its_place() -> None:
    target: Target = detect_target("llvm-cpu", 1)
    names = [module.name for module in Space.default(target).modules]
    assert [module.name for module in TestReduction().space(target).modules] == names
