"""Reads the values that a user gives for a program's inputs and outputs, as ``iree-run-module --input`` takes them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from mlir_sched.errors import UserError
from mlir_sched.payload import TensorSpec
from mlir_sched.tensors.element_types import DTYPES, Array
from mlir_sched.tensors.values import FunctionValues, TensorValue

Value: TypeAlias = str | Path | Array | np.generic | float | TensorValue
"""A value as users give it: an array, a number, a file, or a text as ``iree-run-module --input`` takes it."""
Values: TypeAlias = Sequence[Value] | Mapping[str, Sequence[Value]]
"""Values of the only function of a program, in order, or by function; a text may name its function itself."""

_NAMED = re.compile(r"([A-Za-z_$][\w$.\-]*):(.+)", re.DOTALL)
_BUFFER = re.compile(r"((?:\d+x)*)([a-zA-Z]\w*)(?:=(.*))?", re.DOTALL)
_SEPARATORS = re.compile(r"[\[\],\s]+")
_NAMES = {"true": "1", "false": "0"}


def function_values(inputs: Values, reference: Values = ()) -> tuple[FunctionValues, ...]:
    """Return the values by function, in the order in which functions are named first.

    Raises:
        UserError: A file is missing or is no array, a text does not parse, or outputs are given without inputs.
    """
    given, expected = _by_function(inputs), _by_function(reference)
    for function in expected:
        if function not in given:
            raise UserError(
                f"{_of(function)}a reference is given, but no inputs; give the inputs that it belongs to with --input"
            )
    return tuple(FunctionValues(name, values, expected.get(name, ())) for name, values in given.items())


def fitted(values: Sequence[TensorValue], specs: Sequence[TensorSpec], what: str) -> tuple[TensorValue, ...]:
    """Return values in the element types of a function's tensors.

    Args:
        what: Names them in messages, e.g. ``input of @main``.

    Raises:
        UserError: Number, shape or type of the values differ from those of the tensors.
    """
    if len(values) != len(specs):
        wanted = ", ".join(map(_name_of, specs)) or "none"
        raise UserError(f"{len(values)} values are given for the {what}, which takes {len(specs)}: {wanted}")
    numbered = enumerate(zip(values, specs, strict=True))
    return tuple(_fitted(value, spec, f"{what}, number {position}") for position, (value, spec) in numbered)


def _by_function(values: Values) -> dict[str, tuple[TensorValue, ...]]:
    named = values.items() if isinstance(values, Mapping) else [("", values)]
    found: dict[str, list[TensorValue]] = {}
    for function, each in named:
        if isinstance(each, str | Path | np.ndarray):
            raise UserError(f"{_of(function)}give a list of values, one per tensor, instead of {type(each).__name__}")
        for value in each:
            for name, read in _read(value):
                found.setdefault(name or function, []).append(read)
    return {name: tuple(read) for name, read in found.items()}


def _read(value: Value) -> Iterable[tuple[str, TensorValue]]:
    """Yield the tensors of one value, each with its function, which is empty where the value names none."""
    if isinstance(value, TensorValue):
        yield "", value
    elif isinstance(value, np.ndarray):
        yield "", TensorValue.of(value, "an array")
    elif isinstance(value, int | float | np.generic):
        yield "", TensorValue.of(np.array(value), str(value), untyped=not isinstance(value, np.generic))
    elif isinstance(value, Path):
        yield from _from_path(value, "")
    else:
        named = None if Path(value).exists() else _NAMED.fullmatch(value)
        function, text = named.groups() if named else ("", value)
        yield from _from_text(text, function)


def _from_text(text: str, function: str) -> Iterable[tuple[str, TensorValue]]:
    if text.startswith("@") or text.endswith(".npy") or Path(text).is_dir():
        yield from _from_path(Path(text.removeprefix("@")), function)
    elif (buffer := _BUFFER.fullmatch(text)) and ("=" in text or buffer.group(1)):
        yield function, _buffer(text, *buffer.groups())
    else:
        yield function, TensorValue.of(_numbers(text, [text], None), text, untyped=True)


def _from_path(path: Path, function: str) -> Iterable[tuple[str, TensorValue]]:
    """Yield the arrays of an ``.npy`` file, or of ``0.npy``, ``1.npy`` and so on of a folder or of its subfolders."""
    if not path.is_dir():
        for array in _arrays(path):
            yield function, TensorValue.of(array, str(path))
        return
    files = sorted((file for file in path.glob("*.npy") if file.stem.isdecimal()), key=lambda file: int(file.stem))
    if [int(file.stem) for file in files] != list(range(len(files))):
        raise UserError(f"{path}: the files of a folder are 0.npy, 1.npy and so on, without a gap")
    folders = [] if function else sorted(each for each in path.iterdir() if each.is_dir())
    if not files and not folders:
        raise UserError(f"{path}: the folder has neither 0.npy nor FUNCTION/0.npy")
    for file in files:
        yield from _from_path(file, function)
    for folder in folders:
        yield from _from_path(folder, folder.name)


def _arrays(path: Path) -> list[Array]:
    """Return the arrays of an ``.npy`` file, which may hold several, one after the other."""
    arrays = list[Array]()
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            while file.tell() < size or not arrays:
                arrays.append(np.lib.format.read_array(file, allow_pickle=False))
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    except (ValueError, EOFError) as error:
        raise UserError(f"{path}: no array of numpy.save: {str(error).splitlines()[0]}") from None
    return arrays


def _buffer(text: str, sizes: str, name: str, elements: str | None) -> TensorValue:
    """Return the tensor of ``2x2xf32=1 2 3 4``; without elements it is filled with zeros."""
    shape = tuple(map(int, sizes.split("x")[:-1]))
    dtype = DTYPES.get(name) or DTYPES.get(name.removeprefix("s").removeprefix("u"))
    if dtype is None:
        raise UserError(f"{_short(text)}: unknown element type {name}; known are {', '.join(DTYPES)}")
    spec = TensorSpec(shape, name)
    if elements is not None and elements.startswith("@"):
        return TensorValue.of(_raw(Path(elements[1:]), spec, dtype), text)
    listed = [each for each in _SEPARATORS.split(elements or "0") if each]
    if len(listed) not in (1, spec.elements):
        raise UserError(f"{_short(text)}: {len(listed)} elements for a tensor of {spec.elements}; give all, or one")
    numbers = _numbers(text, listed, dtype)
    array = numbers.reshape(shape) if len(listed) == spec.elements else np.full(shape, numbers[0])
    return TensorValue.of(array, _short(text))


def _raw(path: Path, spec: TensorSpec, dtype: np.dtype[Any]) -> Array:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if len(data) != spec.elements * dtype.itemsize:
        raise UserError(f"{path}: {len(data)} bytes instead of {spec.elements * dtype.itemsize} for {_name_of(spec)}")
    return np.frombuffer(data, dtype).reshape(spec.shape)


def _numbers(text: str, listed: Sequence[str], dtype: np.dtype[Any] | None) -> Array:
    """Return numbers in an element type; without one, whole numbers as i64 and others as f64, of no dimension."""
    listed = [_NAMES.get(each.lower(), each) for each in listed]
    try:
        if dtype is None:
            (only,) = listed
            return np.array(int(only) if re.fullmatch(r"[+-]?\d+", only) else float(only))
        if dtype.kind not in "iub":
            return np.array([float(each) for each in listed]).astype(dtype)
        return np.array([_bits(int(each), dtype) for each in listed], np.int64).astype(dtype)
    except (ValueError, OverflowError):
        raise UserError(
            f"{_short(text)}: neither @FILE.npy, nor SHAPExTYPE=ELEMENTS such as 2x2xf32=1 2 3 4, nor a number"
        ) from None


def _bits(number: int, dtype: np.dtype[Any]) -> int:
    """Return an integer, with or without a sign, as the number with a sign that has the same bits.

    Raises:
        OverflowError: The type cannot hold the integer.
    """
    values = 2 if dtype.kind == "b" else 256**dtype.itemsize
    if not (0 if dtype.kind == "b" else -values // 2) <= number < values:
        raise OverflowError
    return number - values if number >= values // 2 and dtype.kind != "b" else number


def _fitted(value: TensorValue, spec: TensorSpec, what: str) -> TensorValue:
    dtype, array = DTYPES[spec.element_type], value.array
    if value.untyped and spec.shape == () and (array.dtype.kind != "f" or dtype.kind not in "iub"):
        return replace(TensorValue.of(array.astype(dtype), value.source), source=value.source)
    if array.shape != spec.shape or not _same_type(array.dtype, dtype):
        found = "x".join((*map(str, array.shape), _type_name(array.dtype)))
        raise UserError(f"{what}: {value.source} is {found}, but the program has {_name_of(spec)}")
    return value if array.dtype == dtype else TensorValue.of(array.view(dtype), value.source)


def _same_type(given: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Say whether elements have a type, apart from the sign of integers; numpy saves types that it lacks as bytes."""
    if given == wanted:
        return True
    integers = given.kind in "iu" and wanted.kind in "iu"
    raw = given.kind == "V" and given.isbuiltin == 0 and wanted.isbuiltin != 1
    return given.itemsize == wanted.itemsize and (integers or raw)


def _type_name(dtype: np.dtype[Any]) -> str:
    return next((name for name, known in DTYPES.items() if known == dtype), dtype.name)


def _name_of(spec: TensorSpec) -> str:
    return "x".join((*map(str, spec.shape), spec.element_type))


def _of(function: str) -> str:
    return f"@{function}: " if function else ""


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
