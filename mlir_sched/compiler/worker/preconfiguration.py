"""Brings a dispatch to the state that a transform script meets.

Source: IREE, ``addCommonTargetExecutablePreprocessingPasses`` (Codegen/Common/Passes.cpp), before it the generalisation
of named ops on GPUs (SPIRV/Passes.cpp, LLVMGPU/Passes.cpp), and ``iree-codegen-create-dispatch-config``, which creates
the op into which a script writes the number of workgroups. On CUDA and ROCm further passes follow, which put buffers
in place of the tensors that a dispatch loads and stores (LLVMGPU/Passes.cpp,
buildLLVMGPUCodegenConfigurationPassPipeline). IREE later runs all these passes again, without effect.
"""

import re
from collections.abc import Sequence
from typing import Any

from iree.compiler import ir

from mlir_sched.compiler.operations import first_function, walk
from mlir_sched.compiler.passes import run_passes
from mlir_sched.errors import CompilerError

_COMMON = (
    "iree-codegen-type-propagation",
    "iree-codegen-bubble-up-ordinal-ops",
    "iree-codegen-bufferize-copy-only-dispatches",
    "iree-codegen-decompose-softmax",
    "iree-linalg-ext-convert-attention-to-online-attention",
)
_GPU = ("iree-codegen-gpu-generalize-named-ops", *_COMMON)
_LLVM_GPU = (
    *_GPU,
    "iree-codegen-bufferize-dispatch-tensor-load-store",
    "iree-codegen-gpu-combine-layout-transformation",
    "iree-codegen-gpu-generalize-named-ops",
    "iree-codegen-block-dynamic-dimensions",
    "iree-codegen-config-tracking-canonicalize",
    "cse",
)
_PASSES = {"llvm-cpu": _COMMON, "cuda": _LLVM_GPU, "rocm": _LLVM_GPU}
"""The passes by IREE's backend; :data:`_GPU` for any other."""
_BACKEND = re.compile(r'#hal\.executable\.target<"([^"]+)"')
_VARIANT = "hal.executable.variant"


def prepared_module(source: str) -> Any:
    """Return a task's program (``Task.source``) with its dispatch as a script meets it, in the current context.

    Raises:
        CompilerError: A pass fails.
    """
    module = ir.Module.parse(source)
    run_preconfiguration(first_function(module.operation))
    return module


def run_preconfiguration(function: Any) -> None:
    """Run the passes on a dispatch that IREE runs before it applies user configurations.

    Args:
        function: The dispatch's ``func.func``, inside a program at the executable-sources phase.

    Raises:
        CompilerError: A pass fails.
    """
    variant = _variant_of(function)
    run_passes(_pipeline(_backend(variant)), variant)


def prepared_programs(sources: Sequence[str]) -> Any:
    """Return a module of tasks' programs with their dispatches as scripts meet them; the passes run once.

    Raises:
        CompilerError: A pass fails, or the dispatches are for several backends.
    """
    whole = ir.Module.create()
    with ir.InsertionPoint(whole.body):
        for source in sources:
            ir.Module.parse(source).operation.clone()
    _run_on_all(whole, "builtin.module(builtin.module({}))")
    return whole


def run_preconfigurations(module: Any) -> None:
    """Run the passes of :func:`run_preconfiguration` on all dispatches of a program, at once.

    Raises:
        CompilerError: A pass fails, or the dispatches are for several backends.
    """
    _run_on_all(module, "builtin.module({})")


def _run_on_all(module: Any, around: str) -> None:
    """Run the passes on all executables of a module; ``around`` is a pipeline with a place for that of executables."""
    backends = {_backend(op) for op in walk(module.operation) if op.name == _VARIANT}
    if len(backends) > 1:
        raise CompilerError(f"the dispatches are for several backends: {', '.join(sorted(backends))}")
    for backend in backends:
        run_passes(around.format(f"hal.executable({_pipeline(backend)})"), module.operation)


def _pipeline(backend: str) -> str:
    """Return the passes for a backend, on an executable's variant."""
    on_function = f"builtin.module(func.func({','.join(_PASSES.get(backend, _GPU))}))"
    return f"{_VARIANT}(iree-codegen-create-dispatch-config,{on_function})"


def _backend(variant: Any) -> str:
    found = _BACKEND.match(str(variant.attributes["target"]))
    assert found is not None
    return found.group(1)


def _variant_of(function: Any) -> Any:
    operation = function
    while operation.name != _VARIANT:
        operation = operation.parent.operation
    return operation
