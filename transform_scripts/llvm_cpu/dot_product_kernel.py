"""The micro-kernel of a contraction with dot-product instructions, as a function that a script holds.

``vdpbf16ps`` adds two products of bf16 neighbours to each f32 lane, ``vpdpbusd`` four products of an unsigned and a
signed byte to each i32 lane. A signed operand is made unsigned by flipping its sign bits, which adds 128; 128 times the
sum of the other operand's row is subtracted from the accumulators before the loop. This integer arithmetic is exact
modulo 2 to the 32.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlir_sched.transform_scripts.common import with_unique_name
from mlir_sched.transform_scripts.structures import Contraction

LANES = 16
"""Results of one instruction: 32-bit lanes of a 512-bit register."""


@dataclass(frozen=True)
class DotProductInstruction:
    """A dot-product instruction and the multiply-accumulate that it computes.

    Attributes:
        feature: The CPU feature (LLVM's name) that includes the instruction.
        intrinsic: LLVM's name of the instruction; its operands are (accumulators, first operand, second operand).
        types: Element types of the two inputs and of the result.
        body: Scalar ops of the multiply-accumulate, in any order.
        group: Neighbours of the reduction that one lane sums.
        unsigned: Whether the first operand is unsigned while the types are signed.
    """

    feature: str
    intrinsic: str
    types: tuple[str, str, str]
    body: tuple[str, ...]
    group: int
    unsigned: bool


INSTRUCTIONS = (
    DotProductInstruction(
        "avx512bf16",
        "llvm.x86.avx512bf16.dpbf16ps.512",
        ("bf16", "bf16", "f32"),
        ("arith.extf", "arith.extf", "arith.mulf", "arith.addf"),
        2,
        unsigned=False,
    ),
    DotProductInstruction(
        "avx512vnni",
        "llvm.x86.avx512.vpdpbusd.512",
        ("i8", "i8", "i32"),
        ("arith.extsi", "arith.extsi", "arith.muli", "arith.addi"),
        4,
        unsigned=True,
    ),
)
"""The instructions of this module; each needs AVX-512, whose registers are 64 bytes."""


def kernel(mm: Contraction, tile: Sequence[int], instruction: DotProductInstruction) -> str:
    """Return a ``util.func`` that adds the products of a register tile to the result; its name is unique to its text.

    Its arguments are the operands of the op after packing: the group is the last dimension of both inputs, and the
    reduction stands before the vector dimension.

    Args:
        tile: Iterations per loop that the function computes.
    """
    text = "\n".join(_Kernel(mm, tile, instruction).lines())
    return with_unique_name(text, "kernel", instruction.feature)


class _Kernel:
    def __init__(self, mm: Contraction, tile: Sequence[int], instruction: DotProductInstruction) -> None:
        op, columns, reduction = mm.op, mm.position(mm.columns), mm.position(mm.reduction)
        self.instruction = instruction
        kind, _, self.result = instruction.types
        group = instruction.group
        self.rows = 1 if mm.rows is None else tile[mm.position(mm.rows)]
        self.vectors = tile[columns] // LANES
        self.groups = tile[reduction] // group
        extents = dict(enumerate(tile)) | {reduction: self.groups}
        self.arguments: list[str] = []
        for operand in op.inputs:
            dims = operand.loops
            if columns in dims:
                self.vector_argument = len(self.arguments)
                dims = tuple(dims[dim] for dim in operand.ordered(reduction, columns))
            self.arguments.append(_tensor([*(extents[d] for d in dims), group], kind))
        self.out_shape = [extents[d] for d in op.outputs[0].loops]
        self.out = _tensor(self.out_shape, self.result)
        self.accumulator = f"vector<{LANES}x{self.result}>"
        self.wide = f"vector<{LANES * group}x{kind}>"
        self.narrow = f"vector<{group}x{kind}>"
        self.kind, self.group = kind, group
        # The tile without the loops that have one iteration: rows, groups and columns alone.
        self.lhs = _tensor([self.rows, self.groups, group], kind)
        self.rhs = _tensor([self.groups, self.vectors * LANES, group], kind)
        self.flat_rhs = _tensor([self.groups, self.vectors * LANES * group], kind)
        self.flat_lhs = _tensor([self.rows, self.groups * group], kind)
        self.rows_first = _rows_first(mm)
        shape = [self.rows, self.vectors * LANES] if self.rows_first else [self.vectors * LANES, self.rows]
        self.acc = _tensor(shape, self.result)
        self.lanes = [(i, j) for i in range(self.rows) for j in range(self.vectors)]

    def lines(self) -> Iterator[str]:
        """Yield the function line by line."""
        first, second = self.arguments
        yield f"util.func private @kernel(%in0: {first}, %in1: {second}, %out: {self.out}) -> {self.out} {{"
        yield from self._constants()
        yield _slice("a", f"in{1 - self.vector_argument}", self.arguments[1 - self.vector_argument], self.lhs)
        yield _slice("b3", f"in{self.vector_argument}", self.arguments[self.vector_argument], self.rhs)
        yield f"%b = tensor.collapse_shape %b3 [[0], [1, 2]] : {self.rhs} into {self.flat_rhs}"
        yield _slice("c", "out", self.out, self.acc)
        for i, j in self.lanes:
            yield f"%old_{i}_{j} = vector.transfer_read %c[%row{i}, %column{j}], %zero_result " + (
                f"{{in_bounds = [true]}} : {self.acc}, {self.accumulator}"
            )
        if self.instruction.unsigned:
            yield from self._take_off_row_sums()
        yield from self._loop("old" if not self.instruction.unsigned else "less")
        yield from self._write()
        yield "}"

    def _constants(self) -> Iterator[str]:
        zero = "0.0" if self.result.startswith("f") else "0"
        yield "%c0 = arith.constant 0 : index"
        yield "%c1 = arith.constant 1 : index"
        yield f"%groups = arith.constant {self.groups} : index"
        yield f"%zero = arith.constant {zero} : {self.kind}"
        yield f"%zero_result = arith.constant {zero} : {self.result}"
        for i in range(self.rows):
            yield f"%row{i} = arith.constant {i} : index"
        for j in range(self.vectors):
            yield f"%column{j} = arith.constant {LANES * j} : index"
            yield f"%packed{j} = arith.constant {LANES * j * self.group} : index"
        if self.instruction.unsigned:
            yield f"%sign = arith.constant dense<-128> : {self.wide}"

    def _take_off_row_sums(self) -> Iterator[str]:
        """Yield the subtraction of 128 times the sum of each row, which the flipped sign bits add, from the result."""
        step, extent = LANES * self.group, self.groups * self.group
        inside = str(extent % step == 0).lower()
        yield f"%none = arith.constant dense<0> : {self.accumulator}"
        yield f"%step = arith.constant {step} : index"
        yield f"%extent = arith.constant {extent} : index"
        yield f"%rows = tensor.collapse_shape %a [[0], [1, 2]] : {self.lhs} into {self.flat_lhs}"
        yield f"%sums:{self.rows} = scf.for %k = %c0 to %extent step %step " + _carried(
            [f"sum{i}" for i in range(self.rows)], ["none"] * self.rows, self.accumulator
        )
        for i in range(self.rows):
            yield f"%part{i} = vector.transfer_read %rows[%row{i}, %k], %zero " + (
                f"{{in_bounds = [{inside}]}} : {self.flat_lhs}, {self.wide}"
            )
            yield self._call(f"next{i}", f"sum{i}", "sign", f"part{i}")
        yield _yield([f"next{i}" for i in range(self.rows)], self.accumulator)
        for i in range(self.rows):
            yield f"%total{i} = vector.reduction <add>, %sums#{i} : {self.accumulator} into {self.result}"
            yield f"%excess{i} = vector.broadcast %total{i} : {self.result} to {self.accumulator}"
        for i, j in self.lanes:
            yield f"%less_{i}_{j} = arith.subi %old_{i}_{j}, %excess{i} : {self.accumulator}"

    def _loop(self, start: str) -> Iterator[str]:
        names = [f"{i}_{j}" for i, j in self.lanes]
        yield f"%new:{len(names)} = scf.for %k = %c0 to %groups step %c1 " + _carried(
            [f"acc_{name}" for name in names], [f"{start}_{name}" for name in names], self.accumulator
        )
        for j in range(self.vectors):
            read = "raw" if self.instruction.unsigned else "vector"
            yield f"%{read}{j} = vector.transfer_read %b[%k, %packed{j}], %zero " + (
                f"{{in_bounds = [true]}} : {self.flat_rhs}, {self.wide}"
            )
            if self.instruction.unsigned:
                yield f"%vector{j} = arith.xori %raw{j}, %sign : {self.wide}"
        for i in range(self.rows):
            yield f"%group{i} = vector.transfer_read %a[%row{i}, %k, %c0], %zero " + (
                f"{{in_bounds = [true]}} : {self.lhs}, {self.narrow}"
            )
            # One lane of 32 bits, splat: LLVM makes it a broadcast from memory.
            yield f"%word{i} = vector.bitcast %group{i} : {self.narrow} to vector<1xi32>"
            yield f"%scalar{i} = vector.extract %word{i}[0] : i32 from vector<1xi32>"
            yield f"%splat{i} = vector.broadcast %scalar{i} : i32 to vector<{LANES}xi32>"
            yield f"%all{i} = vector.bitcast %splat{i} : vector<{LANES}xi32> to {self.wide}"
            for j in range(self.vectors):
                yield self._call(f"dot_{i}_{j}", f"acc_{i}_{j}", f"vector{j}", f"all{i}")
        yield _yield([f"dot_{name}" for name in names], self.accumulator)

    def _write(self) -> Iterator[str]:
        written = "c"
        for place, (i, j) in enumerate(self.lanes):
            yield f"%written{place} = vector.transfer_write %new#{place}, %{written}[%row{i}, %column{j}] " + (
                f"{{in_bounds = [true]}} : {self.accumulator}, {self.acc}"
            )
            written = f"written{place}"
        zeros, ones = ["0"] * len(self.out_shape), ["1"] * len(self.out_shape)
        shape = [str(size) for size in self.out_shape]
        yield f"%result = tensor.insert_slice %{written} into %out[{', '.join(zeros)}] [{', '.join(shape)}] " + (
            f"[{', '.join(ones)}] : {self.acc} into {self.out}"
        )
        yield f"util.return %result : {self.out}"

    def _call(self, result: str, accumulator: str, first: str, second: str) -> str:
        return (
            f'%{result} = llvm.call_intrinsic "{self.instruction.intrinsic}"(%{accumulator}, %{first}, %{second}) : '
            f"({self.accumulator}, {self.wide}, {self.wide}) -> {self.accumulator}"
        )


def _rows_first(mm: Contraction) -> bool:
    dims = mm.op.outputs[0].loops
    return mm.rows is None or dims.index(mm.position(mm.rows)) < dims.index(mm.position(mm.columns))


def _tensor(shape: Sequence[int], kind: str) -> str:
    return f"tensor<{'x'.join(str(int(size)) for size in shape)}x{kind}>"


def _slice(name: str, source: str, source_type: str, type_: str) -> str:
    """Return the op that drops unit dimensions."""
    shape = source_type.removeprefix("tensor<").split("x")[:-1]
    zeros, ones = ", ".join(["0"] * len(shape)), ", ".join(["1"] * len(shape))
    return f"%{name} = tensor.extract_slice %{source}[{zeros}] [{', '.join(shape)}] [{ones}] : {source_type} to {type_}"


def _carried(names: Sequence[str], starts: Sequence[str], type_: str) -> str:
    pairs = ", ".join(f"%{name} = %{start}" for name, start in zip(names, starts, strict=True))
    return f"iter_args({pairs}) -> ({', '.join([type_] * len(names))}) {{"


def _yield(names: Sequence[str], type_: str) -> str:
    return f"scf.yield {', '.join(f'%{name}' for name in names)} : {', '.join([type_] * len(names))}\n}}"
