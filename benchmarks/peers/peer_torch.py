"""PyTorch as a peer: eager and compiled calls in inference mode, on both memory layouts.

Runs in PyTorch's own environment. ``torch.compile`` needs a C++ compiler; without one only the eager calls are timed.

Arrays arrive in the layouts of IREE's programs: channels last, filters with their output channels last.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.peer import CannotRun, Peer, Prepared, Way, load_module, serve, way_of
from benchmarks.peers.tuning import Tuning

torch: Any = load_module("torch", "PyTorch")
functional: Any = torch.nn.functional

Arrays = Sequence[np.ndarray[Any, Any]]
EAGER, COMPILED = "torch eager", "torch compile"
FORMATS = {3: (), 4: (torch.channels_last,), 5: (torch.channels_last_3d,)}
"""Channels-last memory formats by rank."""


@dataclass(frozen=True)
class Form:
    """One way to write an operator with PyTorch.

    Attributes:
        detail: What distinguishes the form from the operator's other forms.
        call: Computes the result.
        tensors: The arguments of ``call``.
        back: Gives the result the shape that all peers report.
    """

    detail: str
    call: Callable[..., Any]
    tensors: tuple[Any, ...]
    back: Callable[[Any], Any] = lambda result: result


def convolution(arrays: Arrays, call: Callable[..., Any], filter_order: tuple[int, ...], **options: Any) -> list[Form]:
    """Return the forms of a convolution: channels first and, where PyTorch has it, channels last in memory.

    Args:
        arrays: Image, filter, and further arguments of the call.
        filter_order: Permutation of the filter's dimensions into PyTorch's order.
    """
    image, kernel, *others = [torch.from_numpy(array) for array in arrays]
    rank = image.dim()
    image = image.permute((0, rank - 1, *range(1, rank - 1)))
    kernel = kernel.permute(filter_order)

    def convolve(x: Any, w: Any) -> Any:
        return call(x, w, *others, **options)

    def back(result: Any) -> Any:
        return result.permute((0, *range(2, rank), 1))

    forms = [Form("channels first", convolve, (image.contiguous(), kernel.contiguous()), back)]
    for memory in FORMATS[rank]:
        last = (image.contiguous(memory_format=memory), kernel.contiguous(memory_format=memory))
        forms.append(Form("channels last", convolve, last, back))
    return forms


def conv1d(arrays: Arrays) -> list[Form]:
    """Return the forms of C1D: one-dimensional, and two-dimensional of height 1, which has a channels-last layout."""
    signal, kernel = arrays
    tall = convolution((signal[:, None], kernel[None]), functional.conv2d, (3, 2, 0, 1), stride=(1, 2), padding=(0, 1))
    flat = convolution(arrays, functional.conv1d, (2, 1, 0), stride=2, padding=1)
    return [*flat, *map(_without_height, tall)]


def _without_height(form: Form) -> Form:
    return Form(f"{form.detail} 2-d", form.call, form.tensors, lambda result: form.back(result)[:, 0])


def conv2d_bias_norm_relu(arrays: Arrays) -> list[Form]:
    """Return the forms of CBR; scale and offset are folded into filter and bias, within the call."""

    def call(x: Any, w: Any, bias: Any, offset: Any, scale: Any, **options: Any) -> Any:
        return functional.conv2d(x, w * scale.view(-1, 1, 1, 1), bias * scale + offset, **options).relu_()

    return convolution(arrays, call, (3, 2, 0, 1), stride=2, padding=3)


def depthwise_conv2d(arrays: Arrays) -> list[Form]:
    """Return the forms of DEP; PyTorch's filter has one input channel per group."""
    image, kernel = arrays
    return convolution((image, kernel[..., None]), functional.conv2d, (2, 3, 0, 1), padding=1, groups=32)


def transposed_batch_matmul(arrays: Arrays) -> list[Form]:
    """Return the form of TBG: strided views into one batched product."""
    return plain(lambda q, v: torch.matmul(q.permute(0, 2, 1, 3), v.permute(0, 2, 3, 1)))(arrays)


def plain(call: Callable[..., Any]) -> Callable[[Arrays], list[Form]]:
    """Return a function that makes the only form of an operator with one layout."""
    return lambda arrays: [Form("", call, tuple(torch.from_numpy(array) for array in arrays))]


HWIO = (3, 2, 0, 1)
EQUIVALENTS: dict[str, Callable[[Arrays], list[Form]]] = {
    "C1D": conv1d,
    "C2D": lambda a: convolution(a, functional.conv2d, HWIO, stride=2, padding=3),
    "C3D": lambda a: convolution(a, functional.conv3d, (4, 3, 0, 1, 2), stride=2, padding=3),
    "DEP": depthwise_conv2d,
    "DIL": lambda a: convolution(a, functional.conv2d, HWIO, stride=2, padding=3, dilation=2),
    "GRP": lambda a: convolution(a, functional.conv2d, HWIO, stride=2, padding=1, groups=4),
    "T2D": lambda a: convolution(a, functional.conv_transpose2d, (2, 3, 0, 1), stride=2, padding=1),
    "GMM": plain(torch.bmm),
    "TBG": transposed_batch_matmul,
    "CBR": conv2d_bias_norm_relu,
    "NRM": plain(lambda x: torch.linalg.vector_norm(x, dim=(1, 2))),
    "SFM": plain(lambda x: torch.softmax(x, 1)),
    "MM1024": plain(torch.mm),
    "FFN": plain(torch.mm),
}


class TorchPeer(Peer):
    """PyTorch with as many threads as cores."""

    def __init__(self, cores: Sequence[int]) -> None:
        super().__init__(cores)
        torch.set_num_threads(len(cores))
        self._mode = torch.inference_mode()  # ends when it is collected
        self._mode.__enter__()

    def prepare(self, request: Mapping[str, Any], inputs: Arrays) -> Prepared:
        if request["operator"] not in EQUIVALENTS:
            raise CannotRun("no equivalent is known")
        forms = EQUIVALENTS[request["operator"]](inputs)
        empty = Form("", lambda one: one + one, (torch.ones(1),))
        ways, empty_calls = [_way(EAGER, form) for form in forms], {"": _way(EAGER, empty).run}
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(Path(request["work"]) / "inductor")
        start = time.monotonic()
        try:
            *compiled, least = [_compiled(form) for form in (*forms, empty)]
        except Exception as error:
            return Prepared(tuple(ways), empty_calls, notes=(f"{COMPILED}: {_first_lines(error)}",))
        took = Tuning(0, time.monotonic() - start)
        return Prepared((*ways, *compiled), {**empty_calls, COMPILED: least.run}, {COMPILED: took})


def _compiled(form: Form) -> Way:
    """Return a form compiled by ``torch.compile``, after the first call, in which PyTorch compiles it."""
    way = _way(COMPILED, Form(form.detail, torch.compile(form.call, dynamic=False), form.tensors, form.back))
    way.run(1)
    return way


def _way(label: str, form: Form) -> Way:
    return way_of(label, form.detail, lambda: form.call(*form.tensors), lambda result: [form.back(result).numpy()])


def _first_lines(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


if __name__ == "__main__":
    serve(TorchPeer)
