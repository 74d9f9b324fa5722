"""Exports a network, in the environment of the engines: ``python -m benchmarks networks.export NAME FOLDER``.

Writes the inputs (``input.npy``, then ``input1.npy`` and so on), ``model.mlir`` and its weights in ``weights.irpa``
(scope ``model``); with ``--inline`` they are inside of ``model.mlir``. With ``--onnx``, which engines need, it also
writes ``model.onnx``. A network whose results hardly depend on its inputs is refused.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

from benchmarks.networks.modules import LEAST_CHANGE, change_of_results, input_path
from benchmarks.networks.networks import network
from benchmarks.networks.sizes import SHORTER


def export(name: str, folder: Path, *, inline: bool = False, onnx: bool = False, part: int = 1) -> None:
    """Write a network's files into a folder, which is made if there is none.

    Args:
        name: The network.
        folder: The folder.
        inline: Whether the weights are a part of the program, and not a file of their own.
        onnx: Whether to write the network for other engines, too.
        part: What the lengths of its inputs are divided by.
    """
    import iree.turbine.aot as aot
    import torch

    if (change := change_of_results(*network(name, part))) < LEAST_CHANGE:
        sys.exit(f"error: {name}: its results hardly depend on its inputs: they change by {change:.1g} of the largest")
    folder.mkdir(parents=True, exist_ok=True)
    if onnx:  # exporting may change a module, so each export has one of its own
        module, examples = network(name, part)
        torch.onnx.export(module, examples, str(folder / "model.onnx"), dynamo=False, opset_version=17)
    module, examples = network(name, part)
    for place, example in enumerate(examples):
        np.save(input_path(folder, place), example.numpy())
    if not inline:
        aot.externalize_module_parameters(module)
        aot.save_module_parameters(folder / "weights.irpa", module)
    whole, partial = folder / "model.mlir", folder / "partial.mlir"
    aot.export(module, *examples).save_mlir(partial)
    partial.replace(whole)  # so that an export that was killed is no export


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks networks.export", description=__doc__)
    parser.add_argument("name")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--inline", action="store_true", help="leave the weights inside of the program")
    parser.add_argument("--onnx", action="store_true", help="also write model.onnx")
    parser.add_argument("--part", type=int, default=1, help=f"divide the lengths of inputs, of {', '.join(SHORTER)}")
    arguments = parser.parse_args()
    export(arguments.name, arguments.folder, inline=arguments.inline, onnx=arguments.onnx, part=arguments.part)


if __name__ == "__main__":
    main()
