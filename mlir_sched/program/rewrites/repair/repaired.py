"""The repair of programs of a form that IREE compiles wrong: it comes before every other rewrite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from iree.compiler import ir
from iree.compiler.dialects import transform

from mlir_sched.program.rewrites.linalg_ops import maps_of
from mlir_sched.program.rewrites.repair.partial_read import PARTIAL_READ
from mlir_sched.program.rewrites.repair.wrong_form import Read, WrongForm
from mlir_sched.program.rewrites.replacement import match_type, operand_of, ops_named, producer_of
from mlir_sched.program.rewrites.site_rewrite import SiteRewrite
from mlir_sched.program.rewrites.walked_program import WalkedProgram

REPAIRED = "repaired"
"""Name of every repair."""


@dataclass(frozen=True)
class Repaired(SiteRewrite[Read]):
    """Mends the reads that give a program a form.

    No transform op changes a single operand of an op. Hence an op is padded by nothing, in front of the operand alone
    (``nofold``), and then the ``tensor.pad`` is replaced.

    Attributes:
        form: The form.
    """

    name = REPAIRED
    form: WrongForm

    @property
    def symbol(self) -> str:
        """Name of the sequence, with that of the form."""
        return f"{self.name}_{self.form.name}"

    def sites(self, program: WalkedProgram) -> list[Read]:
        """Return the reads of the form, and those that no script tells from them: they are mended alike.

        Ops of other numbers than integers and floats cannot be padded.
        """
        kinds = {read.kind for read in self.form.reads(program) if all(map(_is_real, read.number_types))}
        names = {name for name, *_ in kinds}
        ops = (op for op in program.ops if op.name in names)
        reads = (Read(op, number) for op in ops for number in range(len(op.operands)))
        return [read for read in reads if read.kind in kinds]

    def match(self, root: Any, site: Read) -> None:
        """Emit the comparison of the type of the value that is read."""
        transform.MatchOperationNameOp(root, [site.op.name])
        match_type(operand_of(root, site.number), site.result.type)

    def find(self, module: Any, site: Read, matcher: str) -> Any:
        """Emit a handle on the ops that read such a value and have the attributes and the type of the site's."""
        each = transform.ForeachOp([transform.AnyOpType.get()], [super().find(module, site, matcher)])
        with ir.InsertionPoint(each.body):
            transform.YieldOp([ops_named(each.bodyTargets[0], site.op.name, site.form, site.result_type)])
        return each.results[0]

    def replaced(self, op: Any, site: Read) -> Any:
        """Emit padding by nothing between the value and this reader, and return a handle on the padding."""
        loops = maps_of(site.op)[0].n_dims
        i64, numbers = ir.IntegerType.get_signless(64), range(len(site.op.operands))
        padded = ir.Operation.create(
            "transform.structured.pad",
            operands=[op],
            results=[transform.AnyOpType.get()] * 3,
            attributes={
                "padding_values": ir.ArrayAttr.get([_zero(each) for each in site.number_types]),
                "padding_dimensions": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, loop) for loop in range(loops)]),
                "nofold_flags": ir.ArrayAttr.get([ir.IntegerAttr.get(i64, n == site.number) for n in numbers]),
                "copy_back_op": ir.StringAttr.get("none"),
            },
        )
        return producer_of(padded.results[0], site.number)

    def inputs(self, op: Any, site: Read) -> list[Any]:
        """Emit a handle on the value."""
        del site
        return [operand_of(op, 0)]

    def compute(self, site: Read, *inputs: Any) -> Any:
        """Return what is read in place of the value."""
        del site
        return self.form.repair(*inputs)


def _is_real(type_: ir.Type) -> bool:
    return isinstance(type_, (ir.IntegerType, ir.IndexType, ir.FloatType))


def _zero(type_: ir.Type) -> ir.Attribute:
    return ir.FloatAttr.get(type_, 0.0) if isinstance(type_, ir.FloatType) else ir.IntegerAttr.get(type_, 0)


REPAIRS = tuple(map(Repaired, (PARTIAL_READ,)))
"""A repair for each form of programs that IREE is known to compile wrong."""


def wrong_forms(program: WalkedProgram) -> tuple[WrongForm, ...]:
    """Return the forms that a program has.

    Args:
        program: The program as it enters IREE's preprocessing phase.
    """
    return tuple(repair.form for repair in REPAIRS if repair.finds(program))
