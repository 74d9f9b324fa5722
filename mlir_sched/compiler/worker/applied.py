"""The proof that a script took effect: checked on the IR right after the script ran and after IREE's configuration.

IREE succeeds and generates its default code in many cases where a user configuration was lost, so an exit code proves
nothing: only the IR does.
"""

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

from mlir_sched.attributes import APPLIED
from mlir_sched.compiler.operations import dispatch_configs, walk

_LOWERING_CONFIG = "lowering_config"
_NO_PIPELINE = "no_pipeline"
_WORKGROUP_MAPPING = "#iree_codegen.workgroup_mapping"
_WORKGROUP_ID = "hal.interface.workgroup.id"
_UNDECIDED_COUNT = "iree_tensor_ext.dispatch.workgroup_count_from_slice"


@dataclass(frozen=True)
class CodegenChoice:
    """The attributes that decide how a dispatch's function is lowered.

    Attributes:
        translation_info: The function's ``translation_info`` attribute as text; empty when it has none.
        lowering_configs: The ``lowering_config`` attributes of its ops as sorted text.
    """

    translation_info: str
    lowering_configs: tuple[str, ...]

    @property
    def is_script_only(self) -> bool:
        """Whether the script generated the code itself, and IREE only translates the result to LLVM."""
        return _NO_PIPELINE in self.translation_info


def codegen_choice(function: Any) -> CodegenChoice:
    """Return the choice that a function's attributes express."""
    attributes = function.attributes
    info = str(attributes["translation_info"]) if "translation_info" in attributes else ""
    configs = (op.attributes[_LOWERING_CONFIG] for op in walk(function) if _LOWERING_CONFIG in op.attributes)
    return CodegenChoice(info, tuple(sorted(str(config) for config in configs)))


def why_not_applied(function: Any) -> str:
    """Return why a script did not take effect on a function, or an empty string when it did."""
    if APPLIED not in function.attributes:
        return f"the script did not reach its end: the function has no {APPLIED} annotation"
    choice = codegen_choice(function)
    if choice.is_script_only:
        return _left_over(function) or _uncounted(function)
    if not choice.lowering_configs:
        return "the script sets no lowering_config and no no_pipeline translation_info: IREE would choose by itself"
    return ""


def why_not_honoured(wanted: CodegenChoice, function: Any) -> str:
    """Return how the configured function's attributes differ from those that the script set, or an empty string."""
    if APPLIED not in function.attributes:
        return f"IREE dropped the {APPLIED} annotation"
    found = codegen_choice(function)
    if wanted.translation_info and found.translation_info != wanted.translation_info:
        return f"IREE replaced {wanted.translation_info} by {found.translation_info or 'nothing'}"
    if not wanted.is_script_only and found.lowering_configs != wanted.lowering_configs:
        return f"IREE changed the lowering_config {_listed(wanted)} to {_listed(found)}"
    return ""


def _left_over(function: Any) -> str:
    """Return what a script left undone in a function that no pipeline will complete, or an empty string."""
    for op in walk(function):
        if op.name == "scf.forall" and _WORKGROUP_MAPPING not in str(op.attributes.get("mapping", "")):
            return "the script left an scf.forall without workgroup mapping"
        if op.name.startswith(("linalg.", "iree_linalg_ext.")) and not op.name.startswith("linalg.index"):
            if any(isinstance(value.type, ir.RankedTensorType) for value in op.operands):
                return f"the script left {op.name} on tensors"
            if op.parent.name == "func.func":
                return f"the script left {op.name} neither tiled nor vectorized"
    return ""


def _uncounted(function: Any) -> str:
    """Return why the script does not determine the number of workgroups, or an empty string when it does."""
    names = {op.name for op in walk(function)}
    counted = all(op.name != _UNDECIDED_COUNT for config in dispatch_configs(function) for op in walk(config))
    if _WORKGROUP_ID in names and not counted:
        return "the script uses workgroup ids and does not set the number of workgroups"
    return ""


def _listed(choice: CodegenChoice) -> str:
    return "; ".join(choice.lowering_configs) or "nothing"
