"""A further target costs a description and a folder; targets do not meet in stores, folders or modules."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from command_line import run
from contraction_payloads import matmul
from payloads import vector_add
from vulkan import require_vulkan

from mlir_sched import RecordStore, TuneOptions, tune
from mlir_sched.errors import UserError
from mlir_sched.space.user_modules import load_modules
from mlir_sched.targets import TARGETS, TargetKind, absent_target, described_by, detect_target, llvm_cpu, vulkan
from mlir_sched.targets.devices.vulkan_devices import AMD, FEATURES, NVIDIA, VulkanDevice
from mlir_sched.targets.kind import DEFAULT
from mlir_sched.targets.target import GpuLimits, Target
from mlir_sched.transform_scripts.llvm_cpu import ElementwiseTiling, Lowering, ParallelDistribution
from mlir_sched.transform_scripts.module import TransformModule

NO_DRIVER = {"VK_DRIVER_FILES": "/nonexistent.json", "VK_ICD_FILENAMES": "/nonexistent.json"}


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    """A third target: a description, and a folder of transform modules."""

    def detect(threads: int, device: str) -> Target:
        cpu = llvm_cpu.detect(threads, device)
        return replace(cpu, name="toy-cpu", flags=(*cpu.flags, "--iree-opt-level=O3"))

    class ToyElementwise(ElementwiseTiling):
        name = "toy_elementwise"

    def default_modules() -> list[TransformModule]:
        return [ToyElementwise(), ParallelDistribution(), Lowering()]

    folder = ModuleType("mlir_sched.transform_scripts.toy_cpu")
    folder.default_modules = default_modules  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, folder.__name__, folder)
    monkeypatch.setitem(TARGETS, "toy-cpu", TargetKind(detect, {DEFAULT: ()}, llvm_cpu.facts))
    return "toy-cpu"


@pytest.mark.landing
@pytest.mark.usefixtures("short_sessions")
def test_a_third_target_is_a_description_and_a_folder(toy: str, tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text(vector_add(4096).text)
    result = tune(tmp_path / "model.mlir", tmp_path / "tuned", options=TuneOptions(target=toy, trials=3, threads=1))
    assert result.target == toy
    assert result.trials == 3
    with RecordStore.open(tmp_path / "tuned" / "records.sqlite") as store:
        (task,) = store.tasks()
        (context,) = store.contexts(task.key)
        sketches = {record.trace.sketch for record in store.records(task.key, context) if record.trace}
    assert sketches == {"toy_elementwise"}
    assert "--iree-opt-level=O3" in (tmp_path / "tuned" / "flags.txt").read_text()


@pytest.mark.promise
def test_without_a_vulkan_driver_the_error_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_DRIVER.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "model.mlir").write_text(vector_add(4096).text)
    ended = run(tmp_path, "tune", "model.mlir", "--target", "vulkan")
    assert ended.returncode == 2
    assert "apt-get install mesa-vulkan-drivers libvulkan1" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.promise
def test_doctor_says_what_an_absent_target_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in NO_DRIVER.items():
        monkeypatch.setenv(name, value)
    ended = run(tmp_path, "doctor", "--json")
    (finding,) = [f for f in json.loads(ended.stdout)["findings"] if f["name"] == "target vulkan"]
    assert finding["status"] == "unavailable"
    assert "mesa-vulkan-drivers" in finding["advice"]


def test_vulkan_takes_no_number_of_threads() -> None:
    with pytest.raises(UserError, match="takes no number of threads"):
        detect_target("vulkan", 2)


@pytest.mark.promise
def test_this_machines_vulkan_device_is_described_with_its_limits() -> None:
    require_vulkan()
    target = detect_target("vulkan", 1)
    assert target.backend == "vulkan-spirv"
    assert target.driver.uri.startswith("vulkan://GPU-")
    assert target.gpu is not None
    assert target.gpu.workgroup_threads >= 128  # VkPhysicalDeviceLimits, required minimum
    assert min(target.gpu.workgroup_counts) >= 65535
    assert target.gpu.shared_memory_bytes >= 16384
    assert target.processor in target.description
    assert target.key == detect_target("vulkan", 1).key != detect_target("llvm-cpu", 1).key


@pytest.mark.promise
def test_a_gpu_is_preferred_to_a_software_device(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = GpuLimits(32, 256, (256, 256, 64), (65535, 65535, 65535), 16384)
    software = VulkanDevice("llvmpipe (LLVM)", "llvmpipe Mesa", "00", True, limits)
    hardware = VulkanDevice("A GPU", "a driver 1.0", "11", False, limits)
    monkeypatch.setattr(vulkan, "devices", lambda: [software, hardware])
    target = detect_target("vulkan", 1)
    assert (target.processor, target.driver.uri) == ("A GPU", "vulkan://GPU-11")
    assert target.flags == ("--iree-hal-target-device=vulkan",)
    assert target.gpu is not None
    assert target.gpu.workgroup_threads <= 256  # the driver's limit, below what IREE assumes
    assert [name for name, _ in target.machine] == ["device", "runtime"]
    monkeypatch.setattr(vulkan, "devices", lambda: [software])
    target = detect_target("vulkan", 1)
    assert "--iree-vulkan-target=llvmpipe" in target.flags
    assert [name for name, _ in target.machine] == ["cpu", "device", "runtime"], "a software device is its processor"


@pytest.mark.promise
def test_a_vulkan_device_is_chosen_by_a_part_of_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = GpuLimits(32, 256, (256, 256, 64), (65535, 65535, 65535), 16384)
    named = [VulkanDevice(name, "a driver", uuid, False, limits) for name, uuid in [("Radeon", "aa"), ("Arc", "bb")]]
    monkeypatch.setattr(vulkan, "devices", lambda: named)
    assert detect_target("vulkan:arc", 1).processor == "Arc"
    with pytest.raises(UserError, match="no Vulkan device is named 'geforce'; there are Radeon, Arc"):
        detect_target("vulkan:geforce", 1)


LIMITS = GpuLimits(32, 1024, (1024, 1024, 64), (65535, 65535, 65535), 48 << 10)
RADEON = VulkanDevice(
    *("AMD Radeon", "RADV", "dd", False),
    replace(LIMITS, shared_memory_bytes=64 << 10),
    AMD,
    32,
    FEATURES | {"dot_product"},
)
GEFORCE = VulkanDevice("NVIDIA GeForce", "NVIDIA 580", "cc", False, LIMITS, NVIDIA, 32, FEATURES)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("device", "flag"),
    [
        (GEFORCE, "--iree-vulkan-target=pascal"),
        (replace(GEFORCE, features=FEATURES - {"float16"}), ""),
        (replace(GEFORCE, limits=replace(LIMITS, shared_memory_bytes=32 << 10)), ""),
        (replace(GEFORCE, limits=replace(LIMITS, workgroup_threads=512)), ""),
        (replace(GEFORCE, vendor=AMD), ""),
        (replace(GEFORCE, vendor=AMD, limits=replace(LIMITS, shared_memory_bytes=64 << 10)), ""),
        (RADEON, "--iree-vulkan-target=rdna2"),
        (replace(RADEON, least_subgroup=64), ""),
    ],
)
def test_irees_target_is_one_whose_code_the_driver_runs(
    device: VulkanDevice, flag: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vulkan, "devices", lambda: [device])
    target = detect_target("vulkan", 1)
    assert target.flags == ("--iree-hal-target-device=vulkan", *([flag] if flag else []))
    assert target.gpu is not None
    assert target.gpu.workgroup_threads == (1024 if flag else 128), "what IREE's default target takes is little"
    assert target.gpu.shared_memory_bytes <= device.limits.shared_memory_bytes
    assert dict(vulkan.facts(target))["IREE's target"].startswith(flag.partition("=")[2] or "its default one")


@pytest.mark.promise
def test_a_file_says_what_irees_target_for_a_device_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(vulkan, "devices", lambda: [GEFORCE, RADEON])
    (tmp_path / "gpu.json").write_text('{"iree_target": "rdna3", "device": "radeon"}')
    target = detect_target(described_by("vulkan", tmp_path / "gpu.json"), 1)
    assert (target.processor, target.flags[-1]) == ("AMD Radeon", "--iree-vulkan-target=rdna3")
    assert absent_target(described_by("vulkan", tmp_path / "gpu.json")).flags == target.flags
    for text, said in (
        ("[]", "describe the device by"),
        ("{", "not JSON"),
        ('{"iree_target": "x", "name": 1}', "by an"),
    ):
        (tmp_path / "gpu.json").write_text(text)
        with pytest.raises(UserError, match=said):
            detect_target(described_by("vulkan", tmp_path / "gpu.json"), 1)


@pytest.mark.promise
@pytest.mark.parametrize(("name", "threads"), [("vulkan", 128), ("vulkan:rdna3", 1024), ("vulkan:ampere", 1024)])
def test_a_vulkan_device_that_is_not_there_has_irees_limits(name: str, threads: int) -> None:
    target = absent_target(name)
    assert target.gpu is not None
    assert target.gpu.workgroup_threads == threads
    assert "not there" in dict(target.machine)["device"]


@pytest.mark.promise
def test_the_software_device_has_all_features() -> None:
    """Mesa's device has them, so a place that is read wrongly would show."""
    require_vulkan()
    (software,) = [device for device in vulkan.devices() if device.name.startswith("llvmpipe")]
    assert software.features == FEATURES | {"dot_product"}
    assert software.least_subgroup == software.limits.subgroup_size


def test_a_cpu_has_no_devices() -> None:
    with pytest.raises(UserError, match="has no devices; got llvm-cpu:0"):
        detect_target("llvm-cpu:0", 1)


@pytest.mark.promise
@pytest.mark.parametrize(
    ("name", "flag", "shared_kib"), [("cuda", "sm_80", 163), ("cuda:sm_89", "sm_89", 99), ("cuda:sm_90", "sm_80", 163)]
)
def test_a_cuda_device_need_not_be_there(name: str, flag: str, shared_kib: int) -> None:
    target = absent_target(name)
    assert target.flags == ("--iree-hal-target-device=cuda", f"--iree-cuda-target={flag}")
    assert target.gpu is not None
    assert (target.gpu.subgroup_size, target.gpu.workgroup_threads, target.gpu.workgroup_size[2]) == (32, 1024, 64)
    assert target.assembler == (name.partition(":")[2] or "sm_80")
    assert target.gpu_resources is not None
    assert target.gpu.shared_memory_bytes == shared_kib << 10 <= target.gpu_resources.shared_memory_bytes


@pytest.mark.promise
@pytest.mark.parametrize(("name", "subgroup_size"), [("rocm", 64), ("rocm:gfx1100", 32)])
def test_a_rocm_device_need_not_be_there(name: str, subgroup_size: int) -> None:
    target = absent_target(name)
    assert target.flags == ("--iree-hal-target-device=hip", f"--iree-rocm-target={name.partition(':')[2] or 'gfx942'}")
    assert target.gpu is not None
    assert (target.gpu.subgroup_size, target.gpu.shared_memory_bytes) == (subgroup_size, 65536)
    assert target.vector_bytes == 16
    assert target.gpu_resources is None


@pytest.mark.promise
def test_what_rocm_lacks_is_one_clear_error() -> None:
    with pytest.raises(UserError, match="AMD GPUs are not described yet"):
        detect_target("rocm", 1)
    with pytest.raises(UserError, match="IREE does not know the target: Unknown ROCM target 'gfx1'"):
        absent_target("rocm:gfx1")


@pytest.mark.promise
def test_a_file_describes_a_cuda_device(tmp_path: Path) -> None:
    path = tmp_path / "h200.json"
    path.write_text('{"architecture": "sm_90", "device": "NVIDIA H200", "memory_bytes_per_s": 4.8e12}')
    described, known = absent_target(described_by("cuda", path)), absent_target("cuda:sm_90")
    assert described.processor == "NVIDIA H200 (sm_90)"
    assert described.gpu_resources is not None
    assert known.gpu_resources is not None
    assert described.gpu_resources == replace(known.gpu_resources, memory_bytes_per_s=4.8e12)
    assert described.key != known.key


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ("[]", "describe the device by an object with its architecture"),
        ('{"architecture": "sm_1"}', "unknown CUDA architecture 'sm_1'"),
        ('{"architecture": "sm_90", "cores": 3}', "unknown field 'cores'"),
        ('{"architecture": "sm_90", "clock_hz": "fast"}', "clock_hz must be a number above 0, but is 'fast'"),
        (
            '{"architecture": "sm_90", "multiprocessors": 66.5}',
            "multiprocessors must be a whole number above 0, but is 66.5",
        ),
        ('{"architecture": "sm_90", "clock_hz": NaN}', "clock_hz must be a number above 0, but is nan"),
    ],
)
def test_a_wrong_description_is_one_clear_error(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "gpu.json").write_text(text)
    with pytest.raises(UserError, match=f"gpu.json: {why}|{why}"):
        absent_target(f"cuda:{tmp_path / 'gpu.json'}")


def test_a_description_that_is_not_there_is_one_clear_error() -> None:
    with pytest.raises(UserError, match=r"gpu\.json: no such file"):
        absent_target("cuda:gpu.json")
    with pytest.raises(UserError, match="give a target without a device"):
        described_by("cuda:sm_90", Path("gpu.json"))


@pytest.mark.promise
def test_a_module_for_the_cpu_is_refused_for_vulkan_with_its_stage(tmp_path: Path) -> None:
    require_vulkan()
    (tmp_path / "model.mlir").write_text(matmul(32, 32, 32).text)
    name = "mlir_sched.transform_scripts.llvm_cpu.reduction:ReductionTiling"
    with pytest.raises(UserError, match="'reduction' cannot be used for the target vulkan: its stage 'tile'") as caught:
        tune(
            tmp_path / "model.mlir", None, options=TuneOptions(target="vulkan", trials=1), modules=load_modules([name])
        )
    assert "\n" not in str(caught.value)
