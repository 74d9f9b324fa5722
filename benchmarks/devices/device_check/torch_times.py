"""Seconds that PyTorch takes for the programs of the check; runs in any Python that has PyTorch, without other modules.

``python torch_times.py DEVICE NAME ...`` prints one JSON object: per name the seconds of a whole call, from its
submission to its end, and of one of many calls in a row, which on a GPU is the device's time; null where no equivalent
is known. f32 is computed in f32, not in tf32.
"""

import json
import statistics
import sys
import time
from typing import Any

import torch

SAMPLE_S, SAMPLES = 0.02, 15


def layer(x: Any, q: Any, k: Any, v: Any, o: Any, up: Any, bias: Any, down: Any) -> Any:
    """Return what ``bert_layer.mlir`` computes."""
    functional = torch.nn.functional
    normed = functional.layer_norm(x, x.shape[-1:])
    heads = [torch.einsum("td,dhe->hte", normed, weights) for weights in (q, k, v)]
    attended = functional.scaled_dot_product_attention(*(each[None] for each in heads))[0]
    y = x + torch.einsum("hte,hed->td", attended, o)
    normed = functional.layer_norm(y, y.shape[-1:])
    return y + functional.gelu(normed @ up + bias, approximate="tanh") @ down


def equivalent(name: str, device: str) -> Any:
    """Return a function that computes a program once; None for a program that is not known."""

    def random(*shape: int, kind: Any = torch.float32) -> Any:
        return torch.rand(shape, device=device).to(kind)

    if name.startswith("matmul_"):
        size, kind = int(name.split("_")[1]), torch.float16 if name.endswith("_f16") else torch.float32
        a, b = random(size, size, kind=kind), random(size, size, kind=kind)
        return lambda: a @ b
    if name == "batch_matmul":
        c, d = random(12, 128, 64), random(12, 64, 128)
        return lambda: torch.bmm(c, d)
    if name == "conv2d":
        image = random(1, 3, 224, 224).to(memory_format=torch.channels_last)
        filters = random(64, 3, 7, 7).to(memory_format=torch.channels_last)
        return lambda: torch.nn.functional.conv2d(image, filters, stride=2, padding=3)
    if name == "softmax":
        scores = random(12, 128, 128)
        return lambda: torch.softmax(scores, -1)
    if name == "bert_layer":
        projections = [random(768, 12, 64) for _ in range(3)]
        weights = (*projections, random(12, 64, 768), random(768, 3072), random(3072), random(3072, 768))
        x = random(128, 768)
        return lambda: layer(x, *weights)
    return None


def times(call: Any, device: str) -> dict[str, float]:
    """Return the median seconds of a whole call, and of one of many calls in a row."""

    def wait() -> None:
        if device != "cpu":
            torch.cuda.synchronize()

    def sample(calls: int, *, each: bool) -> float:
        start = time.perf_counter()
        for _ in range(calls):
            call()
            if each:
                wait()
        wait()
        return (time.perf_counter() - start) / calls

    sample(3, each=True)
    calls = max(1, int(SAMPLE_S / sample(3, each=True)))
    return {
        "call_s": statistics.median(sample(calls, each=True) for _ in range(SAMPLES)),
        "row_s": statistics.median(sample(calls, each=False) for _ in range(SAMPLES)),
    }


def main() -> None:
    device, *names = sys.argv[1:]
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    found = {}
    with torch.inference_mode():
        for name in names:
            call = equivalent(name, device)
            found[name] = None if call is None else times(call, device)
    print(json.dumps({"version": torch.__version__, "times": found}))


if __name__ == "__main__":
    main()
