"""Programs at the flow phase with rows of weights, some of which initializers compute from others, as text."""

from __future__ import annotations

ROW = "tensor<8xf32>"


def parameter(name: str, scope: str = "model") -> str:
    return f'util.global private @{name} = #flow.parameter.named<"{scope}"::"layer.{name}"> : {ROW}'


def stores(name: str, ops: str, value: str, type_: str = ROW) -> str:
    """Return a global, and an initializer that makes and stores what it holds."""
    return f"""
util.global private @{name} : {type_}
util.initializer {{
{ops}
  util.global.store {value}, @{name} : {type_}
  util.return
}}"""


def load(name: str) -> str:
    return f"  %{name} = util.global.load @{name} : {ROW}\n"


def product(of: str, by: str) -> str:
    loads = "".join(map(load, dict.fromkeys((of, by))))
    return f"{loads}  %product = arith.mulf %{of}, %{by} : {ROW}"


def main(*names: str) -> str:
    """Return a function that returns globals."""
    loads = "".join(map(load, names))
    views = "".join(f"  %v{name} = hal.tensor.export %{name} : {ROW} -> !hal.buffer_view\n" for name in names)
    kinds = ", ".join("!hal.buffer_view" for _ in names)
    values = ", ".join(f"%v{name}" for name in names)
    return f"util.func public @main() -> ({kinds}) {{\n{loads}{views}  util.return {values} : {kinds}\n}}"
