"""IREE as a peer: loads and calls compiled programs, mlir-sched's among them, with the caching allocator."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import iree.runtime as rt
import numpy as np

from benchmarks.peers.peer import Peer, Prepared, Way, serve
from mlir_sched.payload import TensorSpec
from mlir_sched.runner.program import Program
from mlir_sched.runner.worker.device import LoadedProgram, LocalDevice
from mlir_sched.runner.worker.spinning_threads import yield_to_workers
from mlir_sched.tensors.parameters import ParameterFile


class IreePeer(Peer):
    """Programs on ``local-sync``, or with several cores on ``local-task`` with one pinned worker per core.

    The calling thread yields to the workers, as in ``mlir-sched tune``, unless a request says that it does not, as in
    an ordinary application.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        rt.flags.parse_flags("--task_topology_cpu_ids=" + ",".join(map(str, cores)))
        self._device = LocalDevice.on(rt.VmInstance(), len(cores))

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        if len(self.cores) > 1 and request.get("yields", True):
            yield_to_workers()
        ways = tuple(self._way(program, inputs) for program in request["programs"])
        if "empty" not in request:
            return Prepared(ways, {})
        return Prepared(ways, {"": self._way(request["empty"], [np.ones((1,), np.float32)]).run})

    def _way(self, program: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Way:
        specs = tuple(TensorSpec(tuple(shape), element) for shape, element in program["inputs"])
        outputs = tuple(TensorSpec(tuple(shape), element) for shape, element in program["outputs"])
        vmfb = Path(program["vmfb"]).read_bytes()
        weights = tuple(map(ParameterFile.parse, program.get("parameters", ())))
        loaded = self._device.load(Program(vmfb, program["entry"], specs, outputs, False, weights))
        buffers = [self._device.buffer(array, spec) for array, spec in zip(inputs, specs, strict=True)]
        return Way(
            program["label"],
            program["detail"],
            loaded.bind([buffers], ()),
            lambda: self._results(loaded, buffers, outputs),
        )

    def _results(
        self, loaded: LoadedProgram, buffers: Sequence[Any], outputs: Sequence[TensorSpec]
    ) -> list[np.ndarray[Any, Any]]:
        """Return copies of the results."""
        views = loaded.call(buffers, ())
        return [self._device.read(view, spec, keep=True) for view, spec in zip(views, outputs, strict=True)]


if __name__ == "__main__":
    serve(IreePeer)
