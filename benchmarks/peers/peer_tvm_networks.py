"""TVM MetaSchedule as a peer for networks: tunes the network's ONNX file for some minutes, then runs the program.

Runs in TVM's own environment with the package ``onnx``.
"""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np

from benchmarks.peers.metaschedule import (
    LABEL,
    TvmPeer,
    derived_object,
    ms,
    pin_threads,
    search_note,
    search_options,
    tvm,
)
from benchmarks.peers.peer import Prepared, load_module, serve, way_of

onnx: Any = load_module("onnx", "ONNX")
relax: Any = load_module("tvm.relax", "TVM")
from_onnx: Any = load_module("tvm.relax.frontend.onnx", "TVM").from_onnx

CHANNELS_LAST = {"relax.nn.conv2d": ["NHWC", "HWIO"]}
ROUND_SIZE = 16
"""Trials of a round. MetaSchedule's default is 64: the first round of each of ResNet-50's 29 tasks would take longer
than half an hour on two cores."""
MANY = 10**6
"""More trials than any time has room for."""


class NetworksPeer(TvmPeer):
    """Networks, tuned."""

    def prepare(self, request: Mapping[str, Any], inputs: Sequence[np.ndarray[Any, Any]]) -> Prepared:
        folder = Path(request["folder"])
        module, work = _network(folder / "model.onnx"), folder / f"tvm-{request['run']}"
        tasks = relax.get_pipeline("zero")(module)
        database, took = self.tuned(work, lambda: self._tune(tasks, work, request["minutes"], request["seed"]))
        executable = ms.relax_integration.compile_relax(database, module, self.target, params=None)
        pin_threads(self.cores)
        call = relax.VirtualMachine(executable, tvm.cpu())["main"]
        tensors = [tvm.runtime.tensor(array) for array in inputs]
        way = way_of(LABEL, "", lambda: call(*tensors), _arrays)
        return Prepared((way,), {}, {LABEL: took}, (search_note(ROUND_SIZE),))

    def _tune(self, module: Any, work: Path, minutes: float, seed: int) -> None:
        is_up = Event()
        deadline = Deadline(time.monotonic() + 60 * minutes, is_up)
        try:
            ms.relax_integration.tune_relax(
                module,
                {},
                self.target,
                str(work),
                MANY,
                measure_callbacks=[*ms.measure_callback.MeasureCallback.create("default"), deadline],
                seed=seed,
                **search_options(ROUND_SIZE),
            )
        except RuntimeError:  # whatever a callback raises
            if not is_up.is_set():
                raise


@derived_object
class Deadline(ms.measure_callback.PyMeasureCallback):  # type: ignore[misc]
    """Ends MetaSchedule's tuning, which knows a number of trials only, after the round in which its time is up.

    Args:
        until: Time by ``time.monotonic()``.
        is_up: Set when the time is up.
    """

    def __init__(self, until: float, is_up: Event) -> None:
        super().__init__()
        self.until, self.is_up = until, is_up

    def apply(self, *_: Any) -> None:
        """Raise an error once the time is up."""
        if time.monotonic() >= self.until:
            self.is_up.set()
            raise TimeoutError


def _network(path: Path) -> Any:
    """Return a network whose convolutions have channels last, as MetaSchedule's paper has them.

    The pipeline ``zero`` makes the fused tensor programs that are tuned. TVM compiles a network with a database by the
    same passes, and finds no record for a network that has gone through these passes before.
    """
    module = from_onnx(onnx.load(str(path)))
    for step in (
        relax.transform.DecomposeOpsForInference(),
        relax.transform.FoldConstant(),
        relax.transform.ConvertLayout(CHANNELS_LAST),
        relax.transform.FoldConstant(),
    ):
        module = step(module)
    return module


def _arrays(result: Any) -> list[np.ndarray[Any, Any]]:
    """Return the results of a call, which is a tensor or several."""
    return [tensor.numpy() for tensor in ([result] if hasattr(result, "numpy") else result)]


if __name__ == "__main__":
    serve(NetworksPeer)
