"""Names of what a script holds beside its sequence: each is unique to its text, so that equal texts are held once."""

from __future__ import annotations

import hashlib


def with_unique_name(text: str, placeholder: str, name: str) -> str:
    """Return a text in MLIR syntax whose symbol, ``@placeholder``, is a name and a digest of the text."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    return text.replace(f"@{placeholder}", f"@{name}_{digest}", 1)
