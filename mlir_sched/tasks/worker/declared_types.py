"""The tensor types that IREE declares for a public function.

At the flow phase an argument is a buffer view without a type until it is imported as a tensor, and an argument that its
function only returns is never imported. IREE keeps the types of the function that the user wrote as text::

    sync func @main(%input0: tensor<64x96xf32>, %input1: i32) -> (%output0: tensor<64x96xf32>)
"""

from __future__ import annotations

import re
from typing import Any

from iree.compiler import ir

REFLECTION, DECLARATION = "iree.reflection", "iree.abi.declaration"
_SIGNED = re.compile(r"[su](i\d+)>$")
_TENSOR = re.compile(r"%(input|output)(\d+): (tensor<(?:[^<>]|<[^<>]*>)*>)")


def declared_tensors(function: Any) -> dict[tuple[str, int], Any]:
    """Return the declared tensor types by role, ``input`` or ``output``, and position; empty without a declaration.

    Integers have no sign, as in the rest of the program at this phase.

    Args:
        function: A ``util.func`` of a program at the flow phase.
    """
    if REFLECTION not in function.attributes:
        return {}
    reflection = ir.DictAttr(function.attributes[REFLECTION])
    if DECLARATION not in reflection:
        return {}
    text = ir.StringAttr(reflection[DECLARATION]).value
    return {
        (role, int(position)): ir.Type.parse(_SIGNED.sub(r"\1>", type_))
        for role, position, type_ in _TENSOR.findall(text)
    }
