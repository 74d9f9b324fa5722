"""The rules of all ops that can be computed channels last; any other op reads and makes the model's layout."""

from collections.abc import Mapping
from functools import partial

from mlir_sched.payload import PAD
from mlir_sched.program.rewrites.layout.rules import loops, moves, windows
from mlir_sched.program.rewrites.layout.rules.rule import Rule
from mlir_sched.program.rewrites.linalg_ops import COLLAPSE, CONCAT, EXPAND, GENERIC, SLICE, TRANSPOSE
from mlir_sched.program.rewrites.padding.tensor_pad import number_around

_window = partial(Rule, build=windows.build, axes=windows.axes, any_size=windows.reads_all_pixels)
_LOOPS = "keeps the channels of what it reads: element-wise, broadcast, reduction of one value, gather of pixels"
_RESHAPE = "splits channels, or joins them, where nothing else is split or joined with them"
RULES: Mapping[str, Rule] = {
    **dict.fromkeys(windows.FORMS, _window("channels are the second dim", channels=frozenset([1]))),
    windows.GROUPED_FIRST: _window("groups and channels are the second and third dim", channels=frozenset([1, 2])),
    GENERIC: Rule(_LOOPS, loops.build, loops.axes, loops.fits, any_size=lambda _: True),
    CONCAT: Rule("joins channels, or pixels", moves.joined),
    SLICE: Rule("keeps channels, or some of them", moves.sliced, fits=moves.keeps_rank),
    PAD: Rule("keeps channels; surrounds them with a number", moves.padded, fits=lambda op: bool(number_around(op))),
    **dict.fromkeys((EXPAND, COLLAPSE), Rule(_RESHAPE, moves.reshaped, moves.groups, reshapes=True)),
    TRANSPOSE: Rule("moves channels: a transpose of what lies in memory, or nothing", moves.turned, moves.permuted),
}
"""By name of op."""
