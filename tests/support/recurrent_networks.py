"""Recurrent networks as frameworks export them: cells written out step by step, or in a loop over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from rewriting import run

GATES = {"gru": 3, "lstm": 4}
SIGMOID = ("%n = arith.negf %a : f32", "%e = math.exp %n : f32", "%s = arith.addf %e, %one : f32",
           "%y = arith.divf %one, %s : f32")  # fmt: skip
TANH, ADD, SUBTRACT, MULTIPLY = (
    (f"%y = {op} : f32",) for op in ("math.tanh %a", "arith.addf %a, %b", "arith.subf %a, %b", "arith.mulf %a, %b")
)


@dataclass(frozen=True)
class Recurrent:
    """A network of one recurrent layer; its result is the state after the last step.

    Attributes:
        cell: A key of :data:`GATES`.
        loop: Whether the steps are a loop, not written out.
        time_first: Whether the first dimension of the sequence are the steps, not the batch.
        steps, batch, features: Sizes; a step of the input has as many numbers as the state.
        alternating: Whether the input of every other step, written out, is multiplied by the weights of the state.
        gates_apart: Whether each gate has products of its own, with parts of the weights, as ONNX writes a layer.
        fed_back: Whether each step reads a sequence to which the state before it is added.
    """

    cell: str = "gru"
    loop: bool = False
    time_first: bool = False
    steps: int = 4
    batch: int = 2
    features: int = 8
    fed_back: bool = False
    alternating: bool = False
    gates_apart: bool = False

    @property
    def sequence(self) -> tuple[int, ...]:
        """Sizes of the input."""
        outer = (self.steps, self.batch) if self.time_first else (self.batch, self.steps)
        return *outer, self.features

    def values(self, name: str) -> np.ndarray:
        """Return ``x``, ``of_step``, ``of_state`` or ``bias``."""
        columns = GATES[self.cell] * self.features
        weights = (columns, self.features)
        shapes = {"x": self.sequence, "of_step": weights, "of_state": weights, "bias": (columns,)}
        drawn = np.random.default_rng([*shapes].index(name)).standard_normal(shapes[name])
        return (drawn if name == "x" else drawn / 2).astype(np.float32)

    def evaluated(self, sequence: np.ndarray) -> np.ndarray:
        """Return the result, computed by numpy in double precision."""
        of_step, of_state, bias = (self.values(name).astype(np.float64) for name in ("of_step", "of_state", "bias"))
        state = memory = np.zeros((self.batch, self.features))
        for step in sequence.astype(np.float64).transpose((0, 1, 2) if self.time_first else (1, 0, 2)):
            new = (step + state if self.fed_back else step) @ of_step.T + bias
            old = state @ of_state.T + bias
            parts = [np.split(each, GATES[self.cell], axis=1) for each in (new, old)]
            if self.cell == "gru":
                (r, z, n), (old_r, old_z, old_n) = parts
                z = _sigmoid(z + old_z)
                state = z * state + (1 - z) * np.tanh(n + _sigmoid(r + old_r) * old_n)
            else:
                i, f, g, o = (a + b for a, b in zip(*parts, strict=True))
                memory = _sigmoid(f) * memory + _sigmoid(i) * np.tanh(g)
                state = _sigmoid(o) * np.tanh(memory)
        return state

    @property
    def constants(self) -> str:
        """The lines of the weights, the bias, and the numbers that bodies use."""
        tensors = "\n".join(
            f"  %{each} = arith.constant dense<{self.values(each).tolist()}> : {tensor_of(self.values(each).shape)}"
            for each in ("of_step", "of_state", "bias")
        )
        return f"{tensors}\n  %zero = arith.constant 0.0 : f32\n  %one = arith.constant 1.0 : f32"

    def lines(self, **states: tuple[int, ...]) -> _Lines:
        """Return lines that may use the input, the constants and some states."""
        names = ("x", "of_step", "of_state", "bias")
        return _Lines({f"%{name}": self.values(name).shape for name in names} | {f"%{n}": s for n, s in states.items()})

    def text(self, name: str = "main") -> str:
        """Return the function."""
        x, state = tensor_of(self.sequence), tensor_of((self.batch, self.features))
        return f"""func.func @{name}(%x: {x}) -> {state} {{
{self.constants}
  %first = arith.constant 0 : index
  %next = arith.constant 1 : index
  %end = arith.constant {self.steps} : index
  %none = tensor.empty() : {state}
  %begin = linalg.fill ins(%zero : f32) outs(%none : {state}) -> {state}
{self._loop() if self.loop else self._written_out()}
}}
"""

    def _written_out(self) -> str:
        lines = self.lines(begin=(self.batch, self.features))
        state = memory = "%begin"
        for step in range(self.steps):
            state, memory = self._step(lines, str(step), state, memory)
        return f"{lines.text}\n  return {state} : {tensor_of((self.batch, self.features))}"

    def _loop(self) -> str:
        shape = (self.batch, self.features)
        kind, lines = tensor_of(shape), self.lines(state=shape, memory=shape)
        state, memory = self._step(lines, "%t", "%state", "%memory")
        return f"""  %last:2 = scf.for %t = %first to %end step %next
      iter_args(%state = %begin, %memory = %begin) -> ({kind}, {kind}) {{
{lines.text}
    scf.yield {state}, {memory} : {kind}, {kind}
  }}
  return %last#0 : {kind}"""

    def _step(self, lines: _Lines, at: str, state: str, memory: str) -> tuple[str, str]:
        """Add a step; return the state behind it, and what else an LSTM hands on."""
        offsets = [at, 0, 0] if self.time_first else [0, at, 0]
        sizes = (1, self.batch, self.features) if self.time_first else (self.batch, 1, self.features)
        sequence = lines.added("%x", state) if self.fed_back else "%x"
        step = lines.collapsed(lines.slice(sequence, offsets, sizes))
        weights = "%of_state" if self.alternating and int(at) % 2 else "%of_step"
        new, old = self._gates(lines, step, weights), self._gates(lines, state, "%of_state")
        if self.cell == "gru":
            reset, update = (lines.each(SIGMOID, lines.each(ADD, *each)) for each in zip(new[:2], old[:2], strict=True))
            candidate = lines.each(TANH, lines.each(ADD, new[2], lines.each(MULTIPLY, reset, old[2])))
            difference = lines.each(MULTIPLY, update, lines.each(SUBTRACT, state, candidate))
            return lines.each(ADD, candidate, difference), memory
        read, kept, candidate, shown = (lines.each(ADD, *each) for each in zip(new, old, strict=True))
        read, kept, shown = (lines.each(SIGMOID, gate) for gate in (read, kept, shown))
        added = lines.each(MULTIPLY, read, lines.each(TANH, candidate))
        memory = lines.each(ADD, lines.each(MULTIPLY, kept, memory), added)
        return lines.each(MULTIPLY, shown, lines.each(TANH, memory)), memory

    def _gates(self, lines: _Lines, rows: str, weights: str) -> list[str]:
        """Add what the gates get from rows."""
        parts = range(0, GATES[self.cell] * self.features, self.features)
        if not self.gates_apart:
            product = lines.product(rows, weights, "%bias")
            return [lines.slice(product, [0, part], (self.batch, self.features)) for part in parts]
        square, vector = (self.features, self.features), (self.features,)
        return [
            lines.product(rows, lines.slice(weights, [part, 0], square), lines.slice("%bias", [part], vector))
            for part in parts
        ]


def gated_unit(rows: int, *, scaled: bool = False, heads: int = 1) -> str:
    """Return a function of rows: their product with a matrix times the sigmoid of that with another one.

    Args:
        rows: How many there are.
        scaled: Whether each result is multiplied by the fourth number of its row.
        heads: How many rows the only row of each factor is split into, unless scaled; 1 for none.
    """
    network, features = Recurrent("gru", batch=rows), 8
    shape = (rows, features)
    lines, factors = network.lines(x=shape), (("%of_step", 0), ("%of_state", features))
    value, gate = (lines.slice(lines.product("%x", each, "%bias"), [0, at], shape) for each, at in factors)
    value, gate = (lines.split(each, heads) if heads > 1 else each for each in (value, gate))
    result = lines.each(MULTIPLY, value, lines.each(SIGMOID, gate))
    result = lines.scaled(result, lines.slice("%x", [0, 3], (rows, 1))) if scaled else result
    return f"""func.func @main(%x: {tensor_of(shape)}) -> {lines.type(result)} {{
{network.constants}
{lines.text}
  return {result} : {lines.type(result)}
}}
"""


@dataclass
class _Lines:
    """Lines of a function; every method adds some and returns the name of the value that they make.

    Attributes:
        shapes: Sizes of the values that there are.
        made: The lines.
    """

    shapes: dict[str, tuple[int, ...]]
    made: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(f"  {line}" for line in self.made)

    def slice(self, value: str, offsets: Sequence[object], sizes: tuple[int, ...]) -> str:
        at, ones = ", ".join(map(str, offsets)), ", ".join(["1"] * len(sizes))
        types = f"{self.type(value)} to {tensor_of(sizes)}"
        return self._add(f"tensor.extract_slice {value}[{at}] {[*sizes]} [{ones}] : {types}", sizes)

    def collapsed(self, value: str) -> str:
        first, second, last = self.shapes[value]
        shape = (first * second, last)
        types = f"{self.type(value)} into {tensor_of(shape)}"
        return self._add(f"tensor.collapse_shape {value} [[0, 1], [2]] : {types}", shape)

    def split(self, row: str, parts: int) -> str:
        """Return a row as several rows, one behind the other."""
        shape = (1, parts, self.shapes[row][1] // parts)
        types = f"{self.type(row)} into {tensor_of(shape)}"
        op = f"tensor.expand_shape {row} [[0], [1, 2]] output_shape {[*shape]} : {types}"
        return self.collapsed(self._add(op, shape))

    def product(self, rows: str, weights: str, bias: str) -> str:
        """Return rows times transposed weights, plus a bias."""
        (number, inner), columns = self.shapes[rows], self.shapes[weights][0]
        shape, other = (number, columns), self._empty((inner, columns))
        kinds = f"ins({weights} : {self.type(weights)}) outs({other} : {self.type(other)})"
        other = self._add(f"linalg.transpose {kinds} permutation = [1, 0]", (inner, columns))
        kind, empty = tensor_of(shape), self._empty(shape)
        start = self._add(f"linalg.fill ins(%zero : f32) outs({empty} : {kind}) -> {kind}", shape)
        read = f"ins({rows}, {other} : {self.type(rows)}, {self.type(other)})"
        sums = self._add(f"linalg.matmul {read} outs({start} : {kind}) -> {kind}", shape)
        maps = [_map("i, j"), "affine_map<(i, j) -> (j)>", _map("i, j")]
        return self._generic(maps, f"ins({sums}, {bias} : {kind}, {self.type(bias)})", 2, ADD, shape)

    def added(self, sequence: str, state: str) -> str:
        """Return a sequence, batch first, with a state added to each of its steps."""
        maps = [_map("i, j, k"), "affine_map<(i, j, k) -> (i, k)>", _map("i, j, k")]
        read = f"ins({sequence}, {state} : {self.type(sequence)}, {self.type(state)})"
        return self._generic(maps, read, 2, ADD, self.shapes[sequence])

    def scaled(self, values: str, factors: str) -> str:
        """Return rows multiplied by a factor each."""
        read = f"ins({values}, {factors} : {self.type(values)}, {self.type(factors)})"
        maps = [_map("i, j"), "affine_map<(i, j) -> (i, 0)>", _map("i, j")]
        return self._generic(maps, read, 2, MULTIPLY, self.shapes[values])

    def each(self, body: Sequence[str], *values: str) -> str:
        """Return what a body makes of each element."""
        kinds = ", ".join(map(self.type, values))
        read = f"ins({', '.join(values)} : {kinds})"
        return self._generic([_map("i, j")] * (len(values) + 1), read, len(values), body, self.shapes[values[0]])

    def type(self, value: str) -> str:
        return tensor_of(self.shapes[value])

    def _generic(self, maps: Sequence[str], read: str, number: int, body: Sequence[str], shape: tuple[int, ...]) -> str:
        arguments = ", ".join(f"%{letter}: f32" for letter in [*"ab"[:number], "o"])
        empty, kind, kinds = self._empty(shape), tensor_of(shape), ", ".join(['"parallel"'] * len(shape))
        return self._add(
            f"linalg.generic {{indexing_maps = [{', '.join(maps)}], "
            f"iterator_types = [{kinds}]}} {read} outs({empty} : {kind}) {{\n"
            f"    ^bb0({arguments}):\n      " + "\n      ".join([*body, "linalg.yield %y : f32"]) + f"\n  }} -> {kind}",
            shape,
        )

    def _empty(self, shape: tuple[int, ...]) -> str:
        return self._add(f"tensor.empty() : {tensor_of(shape)}", shape)

    def _add(self, op: str, shape: tuple[int, ...]) -> str:
        name = f"%v{len(self.shapes)}"
        self.made.append(f"{name} = {op}")
        self.shapes[name] = shape
        return name


def tensor_of(shape: Sequence[int]) -> str:
    return f"tensor<{'x'.join(map(str, [*shape, 'f32']))}>"


def _map(dims: str) -> str:
    return f"affine_map<({dims}) -> ({dims})>"


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


def assert_computed(vmfb: bytes, function: str, network: Recurrent) -> None:
    """Assert that a function of a compiled program computes what a network does, by NumPy."""
    x = network.values("x")
    np.testing.assert_allclose(run(vmfb, [x], function), network.evaluated(x), rtol=1e-5, atol=1e-6, err_msg=function)
