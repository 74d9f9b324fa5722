"""Networks made smaller while a finding stays: fewer results, what is computed replaced by arguments, ops left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from benchmarks.fuzz.draft import Value
from benchmarks.fuzz.networks.generator import RandomNetwork
from benchmarks.fuzz.pruning import operations


def reduced(network: RandomNetwork, still: Callable[[RandomNetwork], bool], tries: int) -> RandomNetwork:
    """Return a smaller network of which something still holds.

    Args:
        network: The network, of which it holds.
        still: Says whether it holds of another one.
        tries: How many networks are tried at most.
    """
    while tries > 0:
        for candidate in list(islice(_smaller(network), tries)):
            tries -= 1
            if still(candidate):
                network = candidate
                break
        else:
            return network
    return network


def _smaller(network: RandomNetwork) -> Iterator[RandomNetwork]:
    """Yield smaller networks, those that lack most first."""
    outputs, steps = network.outputs, network.draft.steps
    made = {step.value: step for step in steps}
    for number in reversed(range(len(outputs) if len(outputs) > 1 else 0)):
        yield replace(network, outputs=_with(outputs, number)).pruned
    for value in reversed(made):
        if value not in outputs:
            yield _as_argument(network, value)
    for number, output in enumerate(outputs):
        for value in made[output].read if output in made else ():
            if value in made and made[value].read and value not in outputs:
                yield replace(network, outputs=_with(outputs, number, value)).pruned
    for step in reversed(steps):
        for value in step.read:
            if value.type == step.value.type:
                yield _without(network, step.value, value)


def _with(outputs: tuple[Value, ...], number: int, *values: Value) -> tuple[Value, ...]:
    """Return outputs with others in the place of one."""
    return (*outputs[:number], *values, *outputs[number + 1 :])


def _as_argument(network: RandomNetwork, value: Value) -> RandomNetwork:
    """Return a network that takes a value, as it is computed, as an argument."""
    draft = network.draft
    lines = [line for name, own in operations(draft.lines) if name != value.name for line in own]
    steps = [step for step in draft.steps if step.value != value]
    made = replace(draft, inputs=[*draft.inputs, value], lines=lines, steps=steps)
    return replace(network, draft=made).pruned


def _without(network: RandomNetwork, value: Value, other: Value) -> RandomNetwork:
    """Return a network in which another value of its type takes a value's place."""
    draft, name = network.draft, re.compile(rf"%{value.name}\b")
    lines = [
        name.sub(f"%{other.name}", line) for made, own in operations(draft.lines) if made != value.name for line in own
    ]
    steps = [
        replace(step, read=tuple(other if each == value else each for each in step.read))
        for step in draft.steps
        if step.value != value
    ]
    outputs = tuple(other if each == value else each for each in network.outputs)
    return RandomNetwork(replace(draft, lines=lines, steps=steps), tuple(dict.fromkeys(outputs))).pruned
