"""Networks made smaller while a finding stays: fewer results, what is computed replaced by arguments, ops left out."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from benchmarks.fuzz.networks.generator import RandomNetwork, operations
from benchmarks.mlir_text import Value


def reduced(network: RandomNetwork, still: Callable[[RandomNetwork], bool], tries: int) -> RandomNetwork:
    """Return a smaller network of which something still holds.

    First the values behind the first one that suffices as the result are left out, then those before the last ones that
    suffice as arguments, both by halving. What is left is tried value by value.

    Args:
        still: Says whether it holds of another one.
        tries: How many networks are tried at most.
    """
    count = len(network.draft.steps)
    network = _halved([_ending_with(network, end) for end in range(count)], still) or network
    count = len(network.draft.steps)
    network = _halved([_beginning_with(network, count - behind) for behind in range(1, count)], still) or network
    before = None
    while before is not network:
        before = network
        for value in [step.value for step in reversed(network.draft.steps)]:
            candidates = list(islice(_without_value(network, value), tries))
            found = next((number for number, each in enumerate(candidates) if still(each)), None)
            network, tries = (
                (network, tries - len(candidates)) if found is None else (candidates[found], tries - found - 1)
            )
    return network


def _halved(networks: Sequence[RandomNetwork], still: Callable[[RandomNetwork], bool]) -> RandomNetwork | None:
    """Return the first of networks that grow of which something holds, if it holds of all behind that one.

    None where it does not hold of the last one.
    """
    if not networks or not still(networks[-1]):
        return None
    low, high = 0, len(networks) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if still(networks[middle]) else (middle + 1, high)
    return networks[high]


def _ending_with(network: RandomNetwork, place: int) -> RandomNetwork:
    """Return the network whose result is the value of a step."""
    return replace(network, outputs=(network.draft.steps[place].value,)).pruned


def _beginning_with(network: RandomNetwork, place: int) -> RandomNetwork:
    """Return the network whose arguments are the values of the steps before a place."""
    for step in network.draft.steps[:place]:
        if step.read and step.value not in network.outputs:
            network = _as_argument(network, step.value, prune=False)
    return network.pruned


def _without_value(network: RandomNetwork, value: Value) -> Iterator[RandomNetwork]:
    """Yield networks that do not compute a value: as an argument, or with what it is computed from in its place."""
    step = next((step for step in network.draft.steps if step.value == value), None)
    if step is None:
        return
    if value in network.outputs:
        place = network.outputs.index(value)
        before, behind = network.outputs[:place], network.outputs[place + 1 :]
        if before or behind:
            yield replace(network, outputs=(*before, *behind)).pruned
        computed = [each.value for each in network.draft.steps if each.read and each.value not in network.outputs]
        for read in step.read:
            if read in computed:
                yield replace(network, outputs=(*before, read, *behind)).pruned
    else:
        yield _as_argument(network, value)
    for read in step.read:
        if read.type == value.type:
            yield _replaced(network, value, read)


def _as_argument(network: RandomNetwork, value: Value, *, prune: bool = True) -> RandomNetwork:
    """Return a network that takes a value, as it is computed, as an argument."""
    draft = network.draft
    lines = [line for name, own in operations(draft.lines) if name != value.name for line in own]
    steps = [step for step in draft.steps if step.value != value]
    made = replace(draft, inputs=[*draft.inputs, value], lines=lines, steps=steps)
    found = replace(network, draft=made)
    return found.pruned if prune else found


def _replaced(network: RandomNetwork, value: Value, other: Value) -> RandomNetwork:
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
