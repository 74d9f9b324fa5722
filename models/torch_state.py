"""What the cost models that PyTorch computes share: one core, and their numbers. Needs an extra of the distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def one_core(seed: int) -> Iterator[None]:
    """Have PyTorch compute on one core with random numbers of its own, so that every process finds the same."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            yield
    finally:
        torch.set_num_threads(threads)


def numbers_of(module: Any) -> dict[str, Any]:
    """Return the parameters and buffers of a module as lists, by name."""
    return {name: tensor.tolist() for name, tensor in module.state_dict().items()}


def restore(module: Any, numbers: Mapping[str, Any]) -> None:
    """Give a module of the same form the parameters and buffers that :func:`numbers_of` took from one."""
    own = module.state_dict()
    module.load_state_dict({name: torch.tensor(each, dtype=own[name].dtype) for name, each in numbers.items()})
