"""Runs a benchmark by its name: ``python -m benchmarks NAME [OPTION ...]``; without a name, lists them."""

from __future__ import annotations

import ast
import runpy
import sys
from importlib.util import find_spec
from pathlib import Path

PROGRAMS = {
    "operators": "operators",
    "gains": "operators.gains",
    "further_shapes": "operators.further_shapes",
    "hardware_specific": "operators.hardware_specific",
    "transposed_products": "operators.transposed_products",
    "roofline": "figures.roofline",
    "networks": "networks",
    "networks.census": "networks.census",
    "networks.coverage": "networks.coverage",
    "networks.export": "networks.export",
    "networks.seeds": "networks.seeds",
    "pages": "pages",
    "make_peer": "peers.make_peer",
    "make_engines": "peers.make_engines",
    "composition": "search.composition",
    "record_space": "search.record_space",
    "search_quality": "search.search_quality",
    "space_audit": "search.space_audit",
    "task_scheduling": "search.task_scheduling",
    "allocation": "allocation",
    "allocation.record": "allocation.record",
    "cuda_assembly": "devices.cuda_assembly",
    "device_check": "devices.device_check",
    "time_model": "devices.time_model",
    "fuzz": "fuzz",
    "fuzz.damage": "fuzz.damage",
    "fuzz.faults": "fuzz.faults",
    "fuzz.networks": "fuzz.networks",
    "in_program": "tool.in_program",
    "kills": "tool.kills",
    "loading": "tool.loading",
    "record_store": "tool.record_store",
    "routes": "tool.routes",
    "startup": "tool.startup",
    "tool_speed": "tool.tool_speed",
}
"""The module of every benchmark, by its name."""


def what_it_does(module: str) -> str:
    """Return the first line of a module's docstring, without loading the module."""
    spec = find_spec(f"benchmarks.{module}")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin)
    text = (file.with_name("__main__.py") if spec.submodule_search_locations else file).read_text()
    return (ast.get_docstring(ast.parse(text)) or "").split("\n")[0].split(": ``")[0].rstrip(".:")


def main() -> None:
    """Run the benchmark that the command names."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        print("\n".join(f"  {name:18} {what_it_does(module)}" for name, module in PROGRAMS.items()))
        return
    name = sys.argv[1]
    if name not in PROGRAMS:
        print(f"error: there is no benchmark {name!r}; the names are {', '.join(PROGRAMS)}", file=sys.stderr)
        sys.exit(2)
    del sys.argv[1]
    runpy.run_module(f"benchmarks.{PROGRAMS[name]}", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
