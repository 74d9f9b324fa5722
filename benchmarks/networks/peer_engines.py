"""ONNX Runtime, OpenVINO and PyTorch as a peer: one process with all three, in the environment of the engines.

The peer is asked for a network by its name, and for the folder with its files as the work folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks.networks import network
from benchmarks.operators.peer import Peer, Prepared, Way, load_module, serve, way_of

torch: Any = load_module("torch", "PyTorch")
onnxruntime: Any = load_module("onnxruntime", "ONNX Runtime")
openvino: Any = load_module("openvino", "OpenVINO")

TORCH, ONNX_RUNTIME, OPENVINO = "PyTorch", "ONNX Runtime", "OpenVINO"


class Engines(Peer):
    """The engines with as many threads as cores."""

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        torch.set_num_threads(len(cores))
        self._mode = torch.inference_mode()  # ends when it is collected
        self._mode.__enter__()

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        (given,) = inputs
        model = str(Path(request["folder"]) / "model.onnx")
        ways = [
            *self._torch(request["operator"], given),
            self._onnx_runtime(model, given),
            self._openvino(model, given),
        ]
        return Prepared(tuple(ways), {})

    def _torch(self, name: str, given: np.ndarray[Any, Any]) -> list[Way]:
        """Return eager calls; a network of images also with channels last in memory."""
        module, _ = network(name)
        x = torch.from_numpy(given)
        ways = [way_of(TORCH, "", lambda: module(x), lambda result: result.numpy())]
        if given.ndim == 4:
            last, y = network(name)[0].to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
            ways.append(way_of(TORCH, "channels last", lambda: last(y), lambda result: result.numpy()))
        return ways

    def _onnx_runtime(self, model: str, given: np.ndarray[Any, Any]) -> Way:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = len(self.cores), 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return way_of(ONNX_RUNTIME, "", lambda: session.run(None, {"x": given}), lambda results: results[0])

    def _openvino(self, model: str, given: np.ndarray[Any, Any]) -> Way:
        core = openvino.Core()
        hints = {
            "INFERENCE_NUM_THREADS": len(self.cores),
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }
        request = core.compile_model(core.read_model(model), "CPU", hints).create_infer_request()
        return way_of(OPENVINO, "", lambda: request.infer({0: given}), lambda results: results[0])


if __name__ == "__main__":
    serve(Engines)
