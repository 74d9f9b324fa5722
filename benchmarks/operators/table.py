"""The operators as data: name, programs, and the floating-point operations that every program of an operator has to do.

Shapes are those of each operator's first configuration in TVM 0.27's ``te_workload.py``, which TVM's authors publish
with the paper's benchmark; MM1024 and FFN are added.
"""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.folders import MODELS
from mlir_sched.errors import UserError
from mlir_sched.tasks import Model


@dataclass(frozen=True)
class Operator:
    """One row of the benchmark.

    Attributes:
        name: Name of the operator in tables and for peers.
        files: Programs of the operator. If there are several, they compute the same result: the fastest of IREE's
            counts, and the first is tuned.
        flops: Operations that have to be done, without multiplications by padding or by an inserted zero; None to count
            the program's operations instead.
        known: Whether the peers know the operator under its name.
    """

    name: str
    files: tuple[Path, ...]
    flops: int | None
    known: bool = True


def valid_taps(size: int, kernel: int, *, stride: int = 1, padding: int = 0, dilation: int = 1) -> int:
    """Return the number of (output, kernel position) pairs that read the input, not its padding, in one dimension."""
    outputs = (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    positions = (o * stride + k * dilation - padding for o in range(outputs) for k in range(kernel))
    return sum(0 <= position < size for position in positions)


def _operator(name: str, flops: int, *models: str) -> Operator:
    return Operator(name, tuple(MODELS / f"{model}.mlir" for model in models), flops)


_IMAGE = valid_taps(224, 7, stride=2, padding=3)
_CONV2D = 2 * _IMAGE**2 * 3 * 64

OPERATORS = (
    _operator("C1D", 2 * valid_taps(256, 3, stride=2, padding=1) * 64 * 128, "conv1d"),
    _operator("C2D", _CONV2D, "conv2d"),
    _operator("C3D", 2 * valid_taps(16, 7, stride=2, padding=3) * _IMAGE**2 * 3 * 64, "conv3d"),
    _operator("DEP", 2 * valid_taps(112, 3, padding=1) ** 2 * 32, "depthwise_conv2d"),
    _operator("DIL", 2 * valid_taps(224, 7, stride=2, padding=3, dilation=2) ** 2 * 3 * 64, "dilated_conv2d"),
    _operator("GRP", 2 * valid_taps(56, 3, stride=2, padding=1) ** 2 * 16 * 128, "grouped_conv2d"),
    # a transposed convolution is the transpose of one from 8x8 to 4x4, with as many products
    _operator(
        "T2D",
        2 * valid_taps(8, 4, stride=2, padding=1) ** 2 * 512 * 256,
        "transposed_conv2d_zeros",
        "transposed_conv2d_phases",
    ),
    _operator("GMM", 2 * 128**3, "batch_matmul_128"),
    _operator("TBG", 2 * 12 * 128 * 128 * 64, "transposed_batch_matmul"),
    _operator("CBR", _CONV2D + 4 * 112 * 112 * 64, "conv2d_bias_norm_relu"),
    _operator("NRM", 2 * 256 * 256, "norm"),
    _operator("SFM", 5 * 256 * 256, "softmax_256"),  # maximum, subtract, exponential, sum, divide
    _operator("MM1024", 2 * 1024**3, "matmul_1024"),
    _operator("FFN", 2 * 128 * 768 * 3072, "ffn"),
)


def operator_of_file(path: Path) -> Operator:
    """Return an operator for any program."""
    return Operator(path.stem, (path,), None, known=False)


def operator_named(name: str) -> Operator:
    """Return the operator with a name, or an operator for the program in a ``.mlir`` file.

    Raises:
        UserError: The name is neither an operator nor a ``.mlir`` file.
    """
    for operator in OPERATORS:
        if operator.name == name.upper():
            return operator
    if name.endswith(".mlir"):
        return operator_of_file(Path(name))
    known = ", ".join(operator.name for operator in OPERATORS)
    raise UserError(f"{name}: neither a .mlir file nor an operator; operators are {known}")


CONVERSIONS = frozenset(
    f"arith.{name}" for name in ("extf", "extsi", "extui", "truncf", "trunci", "sitofp", "uitofp", "fptosi", "fptoui")
)
"""Ops that change the type of a number."""


def flops_of(model: Model) -> int:
    """Return the number of scalar operations of a program's dispatches.

    Operations on padding are included, conversions between types are not.
    """
    weighted = ((task.weight, op) for task in model.tasks if task.dispatch is not None for op in task.dispatch.ops)
    return sum(weight * op.iterations * sum(name not in CONVERSIONS for name in op.body) for weight, op in weighted)
