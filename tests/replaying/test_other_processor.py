"""A folder that was tuned on another processor is replayed with the code of this one, and that is said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fixed_targets import FIXED, FIXED_CUDA

from mlir_sched.errors import UserError
from mlir_sched.replaying.replay import other_processor
from mlir_sched.targets import target_kind
from mlir_sched.targets.llvm_cpu import FLAGS
from mlir_sched.targets.processor import CPU, CPU_FEATURES
from mlir_sched.tuned_folder.folder import TunedFolder, on_processor_of, require_target

HERE = replace(FIXED, flags=(*FLAGS[:2], f"{CPU}=znver3", f"{CPU_FEATURES}=-sha"))
PROCESSOR = target_kind(HERE.name).processor
OTHERS = [
    (*FLAGS[:2], f"{CPU}=znver4", "--level=3"),
    (*FLAGS[:2], f"{CPU}=znver3", f"{CPU_FEATURES}=+sha", "--level=3"),
]


def folder_of(*flags: str) -> TunedFolder:
    return TunedFolder(Path("tuned"), flags, "", Path("tuned/library.mlir"), None, {})


@pytest.mark.parametrize("flags", [*OTHERS, (*FLAGS, "--level=3"), (*HERE.flags, "--level=3")])
def test_a_folder_of_another_processor_gets_the_flags_of_this_machine(flags: tuple[str, ...]) -> None:
    folder = folder_of(*flags)
    require_target(folder, HERE, {}, PROCESSOR)
    assert on_processor_of(folder, HERE, PROCESSOR).flags == (*HERE.flags, "--level=3")


def test_another_processor_is_said_with_the_way_out() -> None:
    renamed, with_others = (folder_of(*flags) for flags in OTHERS)
    assert "tuned/flags.txt is for the processor znver4, not znver3; " in other_processor(renamed, HERE)
    assert "for the processor znver3 with +sha; " in other_processor(with_others, HERE)
    assert "replay tuned MODEL -o FOLDER writes a folder for it" in other_processor(renamed, HERE)


@pytest.mark.parametrize("flags", [FLAGS, HERE.flags])
def test_nothing_is_said_of_this_processor(flags: tuple[str, ...]) -> None:
    assert other_processor(folder_of(*flags), HERE) == ""


def test_other_targets_are_refused_as_before() -> None:
    for flags in (FLAGS[:2], ("--iree-hal-target-device=hip", *OTHERS[0][1:])):
        with pytest.raises(UserError, match="the folder is for another target"):
            require_target(folder_of(*flags), HERE, {}, PROCESSOR)
    folder = folder_of("--iree-hal-target-device=cuda", "--iree-cuda-target=sm_90")
    with pytest.raises(UserError, match="has --iree-cuda-target=sm_90 where"):
        require_target(folder, FIXED_CUDA, {}, target_kind(FIXED_CUDA.name).processor)
