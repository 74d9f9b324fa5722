"""Frozen dataclasses as JSON text, such as the ops of a dispatch and the target of a task, which stores and files keep.

The annotations of the fields decide what is written and read, so that nothing has to be said twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pydantic import TypeAdapter

T = TypeVar("T")
_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def dump(value: object) -> str:
    """Return a frozen dataclass as JSON text, of which :func:`load` makes an equal one with equal types.

    Raises:
        ValueError: A field holds something else than its annotation says.
    """
    return _adapter(type(value)).dump_json(value, warnings="error").decode()


def load(kind: type[T], text: str) -> T:
    """Return the dataclass of a kind that :func:`dump` wrote.

    Raises:
        ValueError: The text is none of this kind; the message is one line.
    """
    from pydantic import ValidationError

    try:
        loaded: T = _adapter(kind).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "its text"
        raise ValueError(f"no {kind.__name__}: {where}: {first['msg']}") from None
    return loaded


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    """Return what writes and reads a kind; pydantic is imported here, as few commands need it."""
    if kind not in _ADAPTERS:
        from pydantic import TypeAdapter

        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]
