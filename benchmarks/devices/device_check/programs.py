"""The programs of the check: whose spaces are sampled, and which are tuned."""

from pathlib import Path

from benchmarks.folders import MODELS
from mlir_sched.errors import UserError

SAMPLED = (
    *("matmul_96x120x72", "matmul_256", "matmul_1024_f16", "batch_matmul_8x64x96x128", "matmul_bias_relu"),
    *("transposed_batch_matmul", "vecmat_4096", "conv1d", "conv2d_34x34x32", "depthwise_conv2d", "grouped_conv2d"),
    *("softmax_256", "layernorm", "row_sum", "column_sums", "norm", "transpose", "elementwise_prime"),
)
"""Programs whose random candidates are compared with IREE's own code."""
TUNED = (
    *("matmul_1024", "matmul_1024_f16", "matmul_4096", "matmul_4096_f16"),
    *("batch_matmul", "conv2d", "softmax", "bert_layer"),
)
"""Programs that are tuned and compared with PyTorch."""


def path_of(name: str) -> Path:
    """Return the file of a program of ``benchmarks/models``, or of any ``.mlir`` file.

    Raises:
        UserError: There is no such file.
    """
    path = Path(name) if name.endswith(".mlir") else MODELS / f"{name}.mlir"
    if not path.is_file():
        raise UserError(f"{name}: neither a .mlir file nor a program of {MODELS}")
    return path
