"""Wrong rewrites, a right one, and some that fail, as another distribution registers them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import tensor, transform

from mlir_sched.program.rewrites import Rewrites
from mlir_sched.program.rewrites.linalg_ops import CONCAT, collapse, expand
from mlir_sched.program.rewrites.offered import RewriteFamily
from mlir_sched.program.rewrites.replacement import append_sequence, only_op
from mlir_sched.program.rewrites.rewrite import ProgramRewrite
from mlir_sched.program.rewrites.site_rewrite import OpRewrite, OpSite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

SLICE = "tensor.extract_slice"


@dataclass(frozen=True)
class WrongConcat(OpRewrite[OpSite]):
    """Joins images along their rows, in the shape of images that are joined along their channels."""

    name = "wrong_concat"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        return [OpSite(op) for op in program.ops if op.name == CONCAT]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        shape, element = list(inputs[0].type.shape), inputs[0].type.element_type
        joined = ir.RankedTensorType.get([*shape[:2], len(inputs) * shape[2], shape[3]], element)
        flat = collapse(tensor.concat(joined, 2, list(inputs)), [[0], [1, 2, 3]])
        return expand(flat, [[0], [1, 2, 3]], list(site.result.type.shape))


@dataclass(frozen=True)
class WrongSlice(OpRewrite[OpSite]):
    """Takes the channels from one before the right one on."""

    name = "wrong_slice"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        slices = [OpSite(op) for op in program.ops if op.name == SLICE]
        return [site for site in slices if _numbers(site, "offsets")[1] > 0]

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        batch, channel, *pixels = _numbers(site, "offsets")
        offsets, sizes, strides = [batch, channel - 1, *pixels], _numbers(site, "sizes"), _numbers(site, "strides")
        return tensor.extract_slice(site.result.type, inputs[0], [], [], [], offsets, sizes, strides)


@dataclass(frozen=True)
class Repeated(OpRewrite[OpSite]):
    """Takes the same slices as before."""

    name = "same_slice"

    def sites(self, program: WalkedProgram) -> list[OpSite]:
        return WrongSlice().sites(program)

    def compute(self, site: OpSite, *inputs: Any) -> Any:
        numbers = [_numbers(site, name) for name in ("offsets", "sizes", "strides")]
        return tensor.extract_slice(site.result.type, inputs[0], [], [], [], *numbers)


@dataclass(frozen=True)
class Failing(ProgramRewrite):
    """Fails on every program."""

    named: str
    append_failure: Callable[[Any], Any]

    @property
    def name(self) -> str:
        return self.named

    def finds(self, program: WalkedProgram) -> bool:
        return True

    def append(self, library: ir.Module, program: WalkedProgram, found: bool) -> str:
        append_sequence(library, self.name, lambda module: self.append_failure(module) or module, consumes=True)
        return self.name


def failing_pass(module: Any) -> Any:
    return transform.ApplyRegisteredPassOp(transform.AnyOpType.get(), module, "iree-hal-conversion").result


def missing_op(module: Any) -> None:
    only_op(module, "linalg.no_such_op")


class FailingFamily(RewriteFamily):
    """One fails by a pass of the compiler's, one by itself; a further rewrite is asked about what they make."""

    def rewrites(self, device: str, cores: int) -> Sequence[Rewrites]:
        fails = Failing("refused", failing_pass), Failing("mistaken", missing_op)
        return [(each,) for each in fails] + [(each, Repeated()) for each in fails]


class Family(RewriteFamily):
    def rewrites(self, device: str, cores: int) -> Sequence[Rewrites]:
        return [(WrongConcat(),), (WrongSlice(),), (Repeated(),)]


def _numbers(site: OpSite, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(site.op.attributes[f"static_{name}"]))
