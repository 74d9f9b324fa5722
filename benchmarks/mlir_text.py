"""MLIR programs as text: tensors, and the operations of a function ``@main`` under construction."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Value:
    """A tensor of a program: its name without ``%``, its shape and its element type."""

    name: str
    shape: tuple[int, ...]
    kind: str

    @property
    def type(self) -> str:
        """Its MLIR type."""
        return f"tensor<{''.join(f'{size}x' for size in self.shape)}{self.kind}>"

    @property
    def compiled(self) -> str:
        """The type of its elements in a compiled program: IREE demotes f64 to f32 unless it is told otherwise."""
        return "f32" if self.kind == "f64" else self.kind

    @property
    def is_float(self) -> bool:
        """Whether its elements are floats."""
        return is_float(self.kind)


@dataclass
class FunctionText:
    """A function so far.

    Attributes:
        inputs: The arguments.
        lines: The body.
    """

    inputs: list[Value] = field(default_factory=list, kw_only=True)
    lines: list[str] = field(default_factory=list, kw_only=True)
    _names: int = field(default=0, kw_only=True)

    def line(self, text: str) -> None:
        """Add an operation, or a line of one."""
        self.lines.append(f"  {text}")

    def name(self) -> str:
        """Return a name that is not used yet."""
        self._names += 1
        return f"v{self._names}"

    def value(self, shape: Sequence[int], kind: str) -> Value:
        """Return a tensor with a new name, for an operation to define."""
        return Value(self.name(), tuple(shape), kind)

    def argument(self, *shape: int, kind: str = "f32") -> Value:
        """Add an argument and return it."""
        self.inputs.append(Value(f"arg{len(self.inputs)}", shape, kind))
        return self.inputs[-1]

    def constant(self, number: float, kind: str) -> str:
        """Add a scalar constant and return its name."""
        name = self.name()
        self.line(f"%{name} = arith.constant {_literal(number, kind)} : {kind}")
        return name

    def empty(self, shape: Sequence[int], kind: str) -> Value:
        """Add a tensor without defined elements, for an operation to write into."""
        value = self.value(shape, kind)
        self.line(f"%{value.name} = tensor.empty() : {value.type}")
        return value

    def filled(self, shape: Sequence[int], kind: str, number: float = 0.0) -> Value:
        """Add a tensor filled with a number."""
        scalar, empty = self.constant(number, kind), self.empty(shape, kind)
        value = self.value(shape, kind)
        self.line(f"%{value.name} = linalg.fill ins(%{scalar} : {kind}) outs({operands([empty])}) -> {value.type}")
        return value

    def linalg(self, made: Value, op: str, read: Sequence[Value], start: Value, behind: str = "") -> None:
        """Add a named operation.

        Args:
            made: What it defines.
            op: Its name without the dialect, and its attributes.
            read, start: Its inputs, and the tensor that it writes into.
            behind: What stands behind its operands, by default the type of the result.
        """
        behind = behind or f"-> {made.type}"
        self.line(f"%{made.name} = linalg.{op} ins({operands(read)}) outs({operands([start])}) {behind}")

    def region(self, before: str, arguments: str, body: Sequence[str], behind: str) -> None:
        """Add an operation with a region of one block.

        Args:
            before, behind: The text before and behind the region.
            arguments: Of the block, with their types.
        """
        self.line(f"{before} {{")
        self.line(f"^bb0({arguments}):")
        for line in body:
            self.line(f"  {line}")
        self.line(f"}} {behind}")

    def padding(self, made: Value, value: Value, low: Sequence[int], high: Sequence[int], scalar: str) -> None:
        """Add a padding with a scalar, given the widths in front and behind of each dim."""
        self.region(
            f"%{made.name} = tensor.pad %{value.name} low{list(low)} high{list(high)}",
            ", ".join(f"%i{dim}: index" for dim in range(len(low))),
            [f"tensor.yield %{scalar} : {value.kind}"],
            f": {value.type} to {made.type}",
        )

    def slicing(self, made: Value, value: Value, offsets: Sequence[int], strides: Sequence[int]) -> None:
        """Add what reads a part of a tensor."""
        places = f"{list(offsets)} {list(made.shape)} {list(strides)}"
        self.line(f"%{made.name} = tensor.extract_slice %{value.name}{places} : {value.type} to {made.type}")

    def program(self, *results: Value) -> str:
        """Return the program that returns some values."""
        arguments = ", ".join(f"%{value.name}: {value.type}" for value in self.inputs)
        head = f"func.func @main({arguments}) -> ({', '.join(value.type for value in results)}) {{"
        return "\n".join([head, *self.lines, f"  return {operands(results)}", "}", ""])


def operands(values: Sequence[Value]) -> str:
    """Return values as operands with their types."""
    return f"{', '.join(f'%{value.name}' for value in values)} : {', '.join(value.type for value in values)}"


def generic_over(loops: Sequence[str], maps: Sequence[str], iterators: str) -> str:
    """Return the beginning of a ``linalg.generic`` over loops.

    Args:
        maps: The index expressions of each operand.
        iterators: One letter per loop: p for parallel, r for reduction.
    """
    listed = ", ".join(f"affine_map<({', '.join(loops)}) -> ({each})>" for each in maps)
    kinds = ", ".join({"p": '"parallel"', "r": '"reduction"'}[letter] for letter in iterators)
    return f"linalg.generic {{indexing_maps = [{listed}], iterator_types = [{kinds}]}}"


def window_attributes(strides: Sequence[int], dilations: Sequence[int]) -> str:
    """Return the attributes of a convolution or a pooling."""
    kind = f"tensor<{len(strides)}xi64>"
    return f"{{dilations = dense<{list(dilations)}> : {kind}, strides = dense<{list(strides)}> : {kind}}}"


def is_float(kind: str) -> bool:
    """Return whether an element type is one of floats."""
    return "f" in kind


def _literal(number: float, kind: str) -> str:
    """Return a scalar as MLIR writes it, infinities as the bits of an f32."""
    if math.isinf(number):
        return "0x7F800000" if number > 0 else "0xFF800000"
    return str(float(number) if is_float(kind) else int(number))
