"""How loops are mapped to workgroups on every target."""

from __future__ import annotations


def workgroup_mapping(count: int) -> list[str]:
    """Return the mapping attributes of ``count`` distributed loops, outermost first.

    Source: IREE's WorkgroupMappingAttr; dimensions past the third are linearised into z (``z:1``, ``z:2``, ...).
    """
    names = ["x", "y", "z", *(f"z:{extra}" for extra in range(1, max(1, count - 2)))]
    return [f"#iree_codegen.workgroup_mapping<{name}>" for name in reversed(names[:count])]
