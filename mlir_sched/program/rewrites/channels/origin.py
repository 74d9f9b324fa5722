"""Where the channels of a value come from: back through slices, joins, reshapes, transposes and gathers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mlir_sched.compiler.operations import producer
from mlir_sched.program.rewrites.channels.moves import Span, moved, read_links, read_span
from mlir_sched.program.rewrites.channels.order import Numbers, numbered
from mlir_sched.program.rewrites.convolution_ops import is_static_f32


@dataclass(frozen=True, eq=False)
class Origin:
    """Where the channels of a value come from.

    Attributes:
        sources: The values that have the channels along one dimension.
        moves: The ops from the value back to the sources, and to others whose channels the value has none of.
        numbers: The channels of the value, by their numbers among those of all sources, one source behind the other.
    """

    sources: tuple[Any, ...]
    moves: tuple[Any, ...]
    numbers: Numbers


class Channels(NamedTuple):
    """The channels of a value.

    Attributes:
        value: The value.
        span: The dimensions that they lie along.
    """

    value: Any
    span: Span

    @property
    def read(self) -> list[Channels]:
        """The channels that the op which makes the value moves; none where it does anything else, or none makes it."""
        op = producer(self.value)
        inner = read_span(op, self.span)
        read = [] if inner is None else [Channels(link.value, inner) for link in read_links(op)]
        return read if all(each.is_known for each in read) else []

    @property
    def is_known(self) -> bool:
        """Whether they come from values that have theirs along one dimension."""
        return is_static_f32(self.value) if self.span.rank == 1 else bool(self.read)


@dataclass
class Origins:
    """Where channels of a program come from, each value followed back once.

    Attributes:
        sources: Those found so far, along one dimension each, with the number of the first channel of each.
    """

    sources: dict[Channels, int] = field(default_factory=dict)
    _size: int = 0
    _numbers: dict[Channels, Numbers] = field(default_factory=dict)
    _read: dict[Channels, list[Channels]] = field(default_factory=dict)

    def of(self, channels: Channels) -> Origin:
        """Return where channels come from that are known to come from somewhere."""
        order = self._followed(channels)
        for each in order:
            if each not in self._numbers:
                self._numbers[each] = self._number(each)
        numbers, starts = self._numbers[channels], np.array([*self.sources.values()])
        owners = np.searchsorted(starts, numbers, side="right") - 1
        read, places = np.unique(owners, return_inverse=True)
        sources = [[*self.sources][number] for number in read]
        sizes = [source.value.type.shape[source.span.first] for source in sources]
        first = np.cumsum([0, *sizes])[:-1]
        local = numbers - starts[owners] + first[places.reshape(numbers.shape)]
        moves = dict.fromkeys(producer(each.value) for each in reversed(order) if self._read[each])
        return Origin(tuple(source.value for source in sources), tuple(moves), local)

    def _followed(self, channels: Channels) -> list[Channels]:
        """Return channels and all that they are read from, each behind what it is read from."""
        found, waiting = dict[Channels, None](), [channels]
        while waiting:
            last = waiting[-1]
            left = [each for each in self._reads(last) if each not in found]
            if not left:
                found[waiting.pop()] = None
            waiting += reversed(left)
        return list(found)

    def _reads(self, channels: Channels) -> list[Channels]:
        if channels not in self._read:
            self._read[channels] = channels.read
        return self._read[channels]

    def _number(self, channels: Channels) -> Numbers:
        """Return the numbers of channels, given those of what they are read from."""
        if read := self._read[channels]:
            return moved(producer(channels.value), channels.span, [self._numbers[each] for each in read])
        first, size = self._size, channels.value.type.shape[channels.span.first]
        self.sources[channels], self._size = first, first + size
        return numbered(size, first)
