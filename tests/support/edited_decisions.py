"""A decision in the text of a library or script, edited as a person does it."""

from __future__ import annotations


def with_word(text: str, name: str, old: str, new: str) -> str:
    """Return a text in which a decision between words has another value."""
    lines = text.splitlines()
    (number,) = (i for i, line in enumerate(lines) if f'mlir_sched.name = "{name}"' in line)
    assert f'param.constant "{old}"' in lines[number]
    lines[number] = lines[number].replace(f'param.constant "{old}"', f'param.constant "{new}"')
    return "\n".join(lines)
