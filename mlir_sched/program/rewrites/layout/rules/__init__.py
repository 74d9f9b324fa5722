"""The rules of all ops that can be computed channels last; any other op reads and makes the model's layout."""

from collections.abc import Mapping

from mlir_sched.program.rewrites.layout.rules.loops import Loops
from mlir_sched.program.rewrites.layout.rules.moves import Joins, Paddings, Reshapes, Slices, Transpositions
from mlir_sched.program.rewrites.layout.rules.rule import Rule
from mlir_sched.program.rewrites.layout.rules.windows import Windows

RULES: Mapping[str, Rule] = {
    name: rule
    for rule in (Windows(), Loops(), Joins(), Slices(), Paddings(), Reshapes(), Transpositions())
    for name in rule.names
}
"""By name of op."""
