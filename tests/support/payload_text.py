"""Programs as text: what the small programs of tests are written with."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Payload:
    """A program as text, with the compiler flags it needs to become one dispatch."""

    text: str
    flags: tuple[str, ...] = ()


O3 = ("--iree-opt-level=O3",)


def zero(kind: str) -> str:
    return "0.0" if "f" in kind else "0"


def filled(name: str, type_: str, value: str) -> str:
    scalar = type_.removeprefix("tensor<").split("x")[-1].rstrip(">")
    return f"""
  %{name}_value = arith.constant {value} : {scalar}
  %{name}_empty = tensor.empty() : {type_}
  %{name} = linalg.fill ins(%{name}_value : {scalar}) outs(%{name}_empty : {type_}) -> {type_}"""


def function(arguments: str, result: str, body: str) -> str:
    return f"func.func @main({arguments}) -> {result} {{{body}\n}}\n"


def zeros_above_diagonal(source: str, init: str, type_: str) -> str:
    return f"""
  %r = linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}} ins(%{source} : {type_}) outs(%{init} : {type_}) {{
    ^bb0(%x: f32, %o: f32):
      %i = linalg.index 0 : index
      %j = linalg.index 1 : index
      %c = arith.cmpi sge, %i, %j : index
      %s = arith.select %c, %x, %zero_value : f32
      linalg.yield %s : f32
  }} -> {type_}"""
