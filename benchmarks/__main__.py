"""Runs a benchmark by its name: ``python -m benchmarks NAME [OPTION ...]``; without a name, lists them."""

import ast
import os
import sys
from importlib import import_module

from benchmarks.folders import ROOT
from mlir_sched.errors import UserError

PROGRAMS = {
    "operators": "operators.command",
    "gains": "operators.gains",
    "further_shapes": "operators.further_shapes",
    "hardware_specific": "operators.hardware_specific",
    "transposed_products": "operators.transposed_products",
    "blocked_channels": "operators.blocked_channels.command",
    "roofline": "figures.roofline",
    "networks": "networks.command",
    "networks.census": "networks.census.command",
    "networks.coverage": "networks.coverage",
    "networks.export": "networks.export",
    "networks.seeds": "networks.seeds",
    "networks.variants": "networks.variants.command",
    "pages": "pages.command",
    "make_peer": "peers.make_peer",
    "make_engines": "peers.make_engines",
    "corpus": "corpus.command",
    "strategies": "strategies.command",
    "composition": "search.composition.command",
    "search_quality": "search.search_quality",
    "space_audit": "search.space_audit",
    "task_scheduling": "search.task_scheduling",
    "allocation": "allocation.command",
    "allocation.record": "allocation.record",
    "cuda_assembly": "devices.cuda_assembly.command",
    "device_check": "devices.device_check.command",
    "time_model": "devices.time_model",
    "fuzz": "fuzz.command",
    "fuzz.damage": "fuzz.damage",
    "fuzz.faults": "fuzz.faults",
    "fuzz.networks": "fuzz.networks.command",
    "in_program": "tool.in_program",
    "kills": "tool.kills",
    "loading": "tool.loading",
    "record_store": "tool.record_store",
    "routes": "tool.routes",
    "tool_speed": "tool.tool_speed",
}
"""The module of every benchmark, by its name; ``main`` of the module runs it and may return an exit code."""


def what_it_does(module: str) -> str:
    """Return the first line of a module's docstring, without loading the module."""
    text = (ROOT / "benchmarks" / module.replace(".", "/")).with_suffix(".py").read_text()
    return (ast.get_docstring(ast.parse(text)) or "").split("\n")[0].split(": ``")[0].rstrip(".:")


def main() -> None:
    """Run the benchmark that the command names."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        print("\n".join(f"  {name:19} {what_it_does(module)}" for name, module in PROGRAMS.items()))
        return
    os.environ.setdefault("MLIR_SCHED_STORE", "off")  # what is tuned here is no program of the user
    name = sys.argv.pop(1)
    if name not in PROGRAMS:
        print(f"error: there is no benchmark {name!r}; the names are {', '.join(PROGRAMS)}", file=sys.stderr)
        sys.exit(2)
    sys.argv[0] = f"python -m benchmarks {name}"
    try:
        sys.exit(import_module(f"benchmarks.{PROGRAMS[name]}").main())
    except UserError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
