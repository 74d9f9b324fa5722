"""What tells the code that a tuned folder makes now from the code that was measured, beyond the scripts themselves.

The digest of a dispatch's code (``code_digest.py``) is taken before the code of the processor is generated. So the
processor, the flags and the compiler are compared with those that the folder was tuned with. The machine that compiles
does not matter.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from mlir_sched.compiler.version import compiler_version
from mlir_sched.targets import llvm_cpu
from mlir_sched.targets.processor import CPU, CPU_FEATURES, flag_values, processor_difference
from mlir_sched.tuned_folder.folder import TunedFolder, target_name

_OF_OUTPUT = (
    "--iree-vm-bytecode-module-",
    "--iree-vm-emit-",
    "--iree-hal-dump-",
    "--iree-flow-dump-",
    "--iree-scheduling-dump-",
    "--dump-compilation-phases-to",
    "--mlir-print-",
    "--mlir-elide-",
    "--mlir-timing",
    "--mlir-disable-threading",
)
"""Begins of flags that decide what the compiler writes beside or around the code, and not the code."""
_COMPILER = re.compile(r"\biree-compiler (\S+)")


def differences(folder: TunedFolder, flags: Sequence[str], scripts: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Return how a compilation with a folder differs from what was measured, one text each; empty where it does not.

    What the folder does not say, such as one that was written by hand, is not compared.

    Raises:
        UserError: IREE does not know the processor that the folder's flags name.
    """
    compiled, measured = (*folder.flags, *flags), folder.measured_flags
    other = _other_compiler(folder, scripts)
    processor = _other_processor(compiled, measured, scripts, same_compiler=not other)
    return (*processor, *_other_flags(compiled, measured), *other)


def _other_processor(
    compiled: Sequence[str], measured: Sequence[str], scripts: Mapping[str, Mapping[str, str]], *, same_compiler: bool
) -> Iterator[str]:
    """Yield how the processor that code is generated for differs, from the flags, else from the scripts' provenance."""
    if text := processor_difference(flag_values(compiled), flag_values(measured)):
        yield f"the code is for the processor {text}"
        return
    noted = [origin for origin in scripts.values() if target_name(origin) == llvm_cpu.NAME]
    if not noted:
        return
    now = llvm_cpu.target_of(compiled)
    for name in dict.fromkeys(origin["target"].partition(" ")[2] for origin in noted):
        if name not in ("", now.processor):
            yield f"the code is for the processor {now.processor}, not {name}"
            return
    if same_compiler and any(origin.get("target_key", now.key) != now.key for origin in noted):
        yield f"the code is for {now.processor} with other features than the scripts were measured with"


def _other_flags(compiled: Sequence[str], measured: Sequence[str]) -> Iterator[str]:
    now, then = flag_values(compiled), flag_values(measured)
    for name in sorted({*now, *then} - {CPU, CPU_FEATURES}):
        if now.get(name) != then.get(name) and not name.startswith(_OF_OUTPUT):
            yield f"{name} is {now.get(name, 'not given')}, and was {then.get(name, 'not given')}"


def _other_compiler(folder: TunedFolder, scripts: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    """Return at most one text: which compilers the folder was tuned with, where this one is another."""
    noted = [found[1] for origin in scripts.values() if (found := _COMPILER.search(origin.get("versions", "")))]
    versions = folder.summary.get("versions")
    if isinstance(versions, Mapping) and "iree-compiler" in versions:
        noted.append(str(versions["iree-compiler"]))
    others = sorted(set(noted) - {compiler_version()})
    return (f"the compiler is iree-compiler {compiler_version()}, and was {', '.join(others)}",) if others else ()
