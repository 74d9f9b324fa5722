"""The form of decisions inside a script: attribute names, and JSON data as MLIR attributes and back."""

from functools import lru_cache
from typing import Any

from iree.compiler import ir

from mlir_sched.errors import ScriptError

SKETCH = "mlir_sched.sketch"
LOOKUP = "transform.util.lookup_nearest_symbol_from_self"
"""The op by which a sequence finds a function of the script that it puts into the payload."""
NAME, ELEMENT, DISTRIBUTION, STATIC = (
    "mlir_sched.name",
    "mlir_sched.element",
    "mlir_sched.distribution",
    "mlir_sched.static",
)


@lru_cache(maxsize=1)
def script_context() -> ir.Context:
    """Return this process's context for building and reading scripts."""
    return ir.Context()


def to_attribute(data: Any) -> ir.Attribute:
    """Return the attribute that stands for JSON data (in the current context)."""
    match data:
        case bool():
            return ir.BoolAttr.get(data)
        case int():
            return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), data)
        case float():
            return ir.FloatAttr.get(ir.F64Type.get(), data)
        case str():
            return ir.StringAttr.get(data)
        case list() | tuple():
            return ir.ArrayAttr.get([to_attribute(item) for item in data])
        case dict():
            return ir.DictAttr.get({key: to_attribute(value) for key, value in data.items()})
    raise TypeError(f"no attribute stands for {data!r}")


def from_attribute(attribute: ir.Attribute) -> Any:
    """Return the JSON data that an attribute stands for.

    Raises:
        ScriptError: The attribute stands for no JSON data.
    """
    match attribute:
        case ir.BoolAttr() | ir.StringAttr() | ir.FloatAttr():
            return attribute.value
        case ir.IntegerAttr():
            return int(attribute)
        case ir.DenseI64ArrayAttr():
            return list(attribute)
        case ir.ArrayAttr():
            return [from_attribute(item) for item in attribute]
        case ir.DictAttr():
            return {item.name: from_attribute(item.attr) for item in attribute}
    raise ScriptError(f"unexpected attribute {attribute}")
