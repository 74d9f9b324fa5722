"""ONNX Runtime, OpenVINO and PyTorch as a peer: one process with all three, in the environment of the engines.

PyTorch calls the network eagerly, and as ``torch.compile`` compiles it; the latter needs a C++ compiler.
The peer is asked for a network by its name, and for the folder with its files as the work folder.
"""

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

Arrays = Sequence[np.ndarray[Any, Any]]
EAGER, COMPILED, ONNX_RUNTIME, OPENVINO = "PyTorch, eager", "PyTorch, compiled", "ONNX Runtime", "OpenVINO"


class Engines(Peer):
    """The engines with as many threads as cores."""

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        torch.set_num_threads(len(cores))
        self._mode = torch.inference_mode()  # ends when it is collected
        self._mode.__enter__()

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        model = str(Path(request["folder"]) / "model.onnx")
        eager = self._eager(request["operator"], inputs)
        engines = [self._onnx_runtime(model, inputs), self._openvino(model, inputs)]
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(request["folder"]) / "inductor")
        start = time.monotonic()
        try:
            compiled = self._compiled(request["operator"], inputs)
        except Exception as error:
            notes = (f"{COMPILED}: {' '.join(str(error).split())[:200]}",)
            return Prepared((*eager, *engines), {}, notes=notes)
        took = Tuning(0, time.monotonic() - start)
        return Prepared((*eager, *engines, *compiled), {}, {COMPILED: took})

    def _eager(self, name: str, inputs: Arrays) -> list[Way]:
        """Return eager calls; a network of images also with channels last in memory."""
        return [
            way_of(EAGER, detail, partial(module, *tensors), _arrays)
            for detail, module, tensors in _layouts(name, inputs)
        ]

    def _compiled(self, name: str, inputs: Arrays) -> list[Way]:
        """Return compiled calls, as :meth:`_eager`, each after the first call, in which PyTorch compiles it."""
        ways = []
        for detail, module, tensors in _layouts(name, inputs):
            call = partial(torch.compile(module, dynamic=False), *tensors)
            call()
            ways.append(way_of(COMPILED, detail, call, _arrays))
        return ways

    def _onnx_runtime(self, model: str, inputs: Arrays) -> Way:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = len(self.cores), 1
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        names = [given.name for given in session.get_inputs()]
        fed = dict(zip(names, inputs, strict=True))
        return way_of(ONNX_RUNTIME, "", lambda: session.run(None, fed), list)

    def _openvino(self, model: str, inputs: Arrays) -> Way:
        core = openvino.Core()
        hints = {
            "INFERENCE_NUM_THREADS": len(self.cores),
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
        }
        request = core.compile_model(core.read_model(model), "CPU", hints).create_infer_request()
        fed = dict(enumerate(inputs))
        return way_of(OPENVINO, "", lambda: request.infer(fed), lambda results: list(results.values()))


def _layouts(name: str, inputs: Arrays) -> Iterator[tuple[str, Any, list[Any]]]:
    """Yield (layout, network, inputs); a network of images is also given with channels last in memory."""
    tensors, last = [torch.from_numpy(array) for array in inputs], torch.channels_last
    yield "", network(name)[0], tensors
    if any(array.ndim == 4 for array in inputs):
        images = [tensor.to(memory_format=last) if tensor.ndim == 4 else tensor for tensor in tensors]
        yield "channels last", network(name)[0].to(memory_format=last), images


def _arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    """Return the results of a network, which is a tensor or a tuple of them."""
    return [tensor.numpy() for tensor in (result if isinstance(result, tuple) else (result,))]


if __name__ == "__main__":
    serve(Engines)
