"""ONNX Runtime, OpenVINO and PyTorch as a peer: one process with all three, in the environment of the engines.

PyTorch calls the network eagerly, and as ``torch.compile`` compiles it; the latter needs a C++ compiler.
The peer is asked for a network by its name, and for the folder with its files as the work folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.networks.networks import network
from benchmarks.peers.peer import Peer, Prepared, Way, load_module, serve, way_of
from benchmarks.peers.tuning import Tuning

torch: Any = load_module("torch", "PyTorch")
onnxruntime: Any = load_module("onnxruntime", "ONNX Runtime")
openvino: Any = load_module("openvino", "OpenVINO")

EAGER, COMPILED, ONNX_RUNTIME, OPENVINO = "PyTorch, eager", "PyTorch, compiled", "ONNX Runtime", "OpenVINO"


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
        eager, engines = self._eager(request["operator"], given), [self._onnx_runtime(model, given)]
        engines.append(self._openvino(model, given))
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(request["folder"]) / "inductor")
        start = time.monotonic()
        try:
            compiled = self._compiled(request["operator"], given)
        except Exception as error:
            notes = (f"{COMPILED}: {' '.join(str(error).split())[:200]}",)
            return Prepared((*eager, *engines), {}, notes=notes)
        took = Tuning(0, time.monotonic() - start)
        return Prepared((*eager, *engines, *compiled), {}, {COMPILED: took})

    def _eager(self, name: str, given: np.ndarray[Any, Any]) -> list[Way]:
        """Return eager calls; a network of images also with channels last in memory."""
        return [
            way_of(EAGER, detail, partial(module, x), lambda result: result.numpy())
            for detail, module, x in _layouts(name, given)
        ]

    def _compiled(self, name: str, given: np.ndarray[Any, Any]) -> list[Way]:
        """Return compiled calls, as :meth:`_eager`, each after the first call, in which PyTorch compiles it."""
        ways = []
        for detail, module, x in _layouts(name, given):
            call = partial(torch.compile(module, dynamic=False), x)
            call()
            ways.append(way_of(COMPILED, detail, call, lambda result: result.numpy()))
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


def _layouts(name: str, given: np.ndarray[Any, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (layout, network, input); a network of images is also given with channels last in memory."""
    x, last = torch.from_numpy(given), torch.channels_last
    yield "", network(name)[0], x
    if given.ndim == 4:
        yield "channels last", network(name)[0].to(memory_format=last), x.to(memory_format=last)


if __name__ == "__main__":
    serve(Engines)
