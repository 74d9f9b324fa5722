"""Exports a network: ``python -m benchmarks.networks.export NAME FOLDER``, in the environment of the engines.

Writes ``input.npy``, ``model.mlir`` and its weights in ``weights.irpa`` (scope ``model``). A network that is compared
with engines also has a ``model.onnx``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from benchmarks.networks.networks import NETWORKS, network


def export(name: str, folder: Path) -> None:
    """Write a network's files into a folder, which is made if there is none."""
    import iree.turbine.aot as aot
    import torch

    folder.mkdir(parents=True, exist_ok=True)
    module, example = network(name)
    np.save(folder / "input.npy", example.numpy())
    if name in NETWORKS:
        torch.onnx.export(
            module, (example,), str(folder / "model.onnx"), dynamo=False, opset_version=17, input_names=["x"]
        )
    aot.externalize_module_parameters(module)
    aot.save_module_parameters(folder / "weights.irpa", module)
    aot.export(module, example).save_mlir(folder / "model.mlir")


if __name__ == "__main__":
    export(sys.argv[1], Path(sys.argv[2]))
