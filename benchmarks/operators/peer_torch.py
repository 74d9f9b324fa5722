"""PyTorch as a peer: eager calls in inference mode, on both memory layouts; runs in PyTorch's own environment.

Arrays come as the programs take them: channels last, filters with their output channels last.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.operators.peer import CannotRun, Peer, Prepared, Way, load_module, serve

torch: Any = load_module("torch", "PyTorch")
functional: Any = torch.nn.functional

Arrays = Sequence[np.ndarray[Any, Any]]
Call = Callable[[], Any]
FORMATS = {3: (), 4: (torch.channels_last,), 5: (torch.channels_last_3d,)}
"""Channels-last memory formats by rank."""


def convolution(arrays: Arrays, call: Callable[..., Any], filter_order: tuple[int, ...], **options: Any) -> list[Way]:
    """Return the ways of a convolution: channels first and, where PyTorch has it, channels last in memory.

    Args:
        arrays: Image, filter, and what else the call takes.
        call: The convolution.
        filter_order: Permutation of the filter to what PyTorch wants.
        options: Of the call.
    """
    image, kernel, *others = [torch.from_numpy(array) for array in arrays]
    rank = image.dim()
    channels_first = (0, rank - 1, *range(1, rank - 1))
    image = image.permute(channels_first)
    kernel = kernel.permute(filter_order)
    back = (0, *range(2, rank), 1)
    ways = [
        _way(
            "channels first",
            lambda x, w: call(x, w, *others, **options),
            (image.contiguous(), kernel.contiguous()),
            back,
        )
    ]
    for memory in FORMATS[rank]:
        last = (image.contiguous(memory_format=memory), kernel.contiguous(memory_format=memory))
        ways.append(_way("channels last", lambda x, w: call(x, w, *others, **options), last, back))
    return ways


def conv1d(arrays: Arrays) -> list[Way]:
    """Return the ways of C1D: as it is, and as a two-dimensional one of height 1, which has a channels-last layout."""
    signal, kernel = arrays
    tall = convolution((signal[:, None], kernel[None]), functional.conv2d, (3, 2, 0, 1), stride=(1, 2), padding=(0, 1))
    flat = convolution(arrays, functional.conv1d, (2, 1, 0), stride=2, padding=1)
    return [*flat, *(Way(w.label, f"{w.detail} 2-d", w.run, _reshaped(w, (1, 128, 128))) for w in tall)]


def conv2d_bias_norm_relu(arrays: Arrays) -> list[Way]:
    """Return the ways of CBR; scale and offset are folded into filter and bias, within the call."""

    def call(x: Any, w: Any, bias: Any, offset: Any, scale: Any, **options: Any) -> Any:
        return functional.conv2d(x, w * scale.view(-1, 1, 1, 1), bias * scale + offset, **options).relu_()

    return convolution(arrays, call, (3, 2, 0, 1), stride=2, padding=3)


def depthwise_conv2d(arrays: Arrays) -> list[Way]:
    """Return the ways of DEP; PyTorch's filter has one input channel per group."""
    image, kernel = arrays
    return convolution((image, kernel[..., None]), functional.conv2d, (2, 3, 0, 1), padding=1, groups=32)


def transposed_batch_matmul(arrays: Arrays) -> list[Way]:
    """Return the way of TBG: strided views into one batched product."""
    return plain(lambda q, v: torch.matmul(q.permute(0, 2, 1, 3), v.permute(0, 2, 3, 1)))(arrays)


def plain(call: Callable[..., Any]) -> Callable[[Arrays], list[Way]]:
    """Return the only way of what has one layout."""
    return lambda arrays: [_way("", call, tuple(torch.from_numpy(array) for array in arrays), None)]


HWIO = (3, 2, 0, 1)
EQUIVALENTS: dict[str, Callable[[Arrays], list[Way]]] = {
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
        torch.inference_mode().__enter__()

    def empty_call(self) -> Callable[[int], None]:
        one = torch.ones(1)
        return _repeated(lambda: one + one)

    def prepare(self, request: Mapping[str, Any], inputs: Arrays) -> Prepared:
        if request["operator"] not in EQUIVALENTS:
            raise CannotRun("no equivalent is known")
        return Prepared(tuple(EQUIVALENTS[request["operator"]](inputs)))


def _way(detail: str, call: Callable[..., Any], tensors: tuple[Any, ...], back: tuple[int, ...] | None) -> Way:
    def once() -> Any:
        return call(*tensors)

    def result() -> np.ndarray[Any, Any]:
        made = once() if back is None else once().permute(back)
        return np.ascontiguousarray(made.numpy())

    return Way("torch", detail, _repeated(once), result)


def _repeated(call: Call) -> Callable[[int], None]:
    def run(calls: int) -> None:
        for _ in range(calls):
            call()

    return run


def _reshaped(way: Way, shape: tuple[int, ...]) -> Callable[[], np.ndarray[Any, Any]]:
    return lambda: way.result().reshape(shape)


if __name__ == "__main__":
    serve(TorchPeer)
