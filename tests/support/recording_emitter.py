"""An emitter that keeps what a schedule emits as lines of text, without MLIR."""

from __future__ import annotations

from collections.abc import Sequence

from mlir_sched.transform_scripts.emitter import Emitter, Handle, Place


class RecordingEmitter(Emitter):
    """An emitter whose handles are names, and whose ops are lines such as ``tile matmul by [1, 0, 0]``."""

    def __init__(self) -> None:
        self._entries: list[list[str]] = []
        self._handles = 0

    @property
    def lines(self) -> list[str]:
        """What was emitted, in the order of the script."""
        return [line for (line,) in self._entries]

    def take(self) -> list[str]:
        """Return what was emitted since the last call."""
        lines = self.lines
        self._entries.clear()
        return lines

    def match_linalg_ops(self, count: int) -> tuple[Handle, ...]:
        return tuple(f"op{index}" for index in range(count))

    def match_ops(self, names: Sequence[str]) -> Handle:
        return self._made(f"match {', '.join(names)}")

    def match_marked(self, mark: str) -> Handle:
        return self._made(f"match {mark}")

    def split(self, handle: Handle, count: int) -> tuple[Handle, ...]:
        if count == 1:
            return (handle,)
        self._emit(f"split {handle} in {count}")
        return tuple(f"{handle}#{index}" for index in range(count))

    def forget_loops(self) -> None:
        self._emit("forget loops")

    def tile_using_for(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        tiled = self._made(f"tile {target} by {_numbers(sizes)}")
        return tiled, tuple(f"loop{index} of {tiled}" for index, size in enumerate(sizes) if size)

    def fuse(self, target: Handle, sizes: Sequence[int]) -> tuple[Handle, tuple[Handle, ...]]:
        tiled = self._made(f"fuse {target} by {_numbers(sizes)}")
        return tiled, tuple(f"loop{index} of {tiled}" for index, size in enumerate(sizes) if size)

    def tile_reduction_using_for(
        self, target: Handle, sizes: Sequence[int], results: int
    ) -> tuple[Handle, Handle, Handle]:
        del results
        made = self._made(f"rfactor {target} by {_numbers(sizes)}")
        return f"partial of {made}", f"combine of {made}", f"loop of {made}"

    def interchange(self, target: Handle, order: Sequence[int]) -> Handle:
        return self._made(f"interchange {target} to {list(order)}")

    def pack(self, target: Handle, sizes: Sequence[int]) -> Handle:
        return self._made(f"pack {target} by {_numbers(sizes)}")

    def transpose_pack(self, target: Handle, operand: int, order: Sequence[int]) -> Handle:
        return self._made(f"transpose operand {operand} of {target} to {list(order)}")

    def hoist_operand(
        self, target: Handle, operand: int, zeros: Sequence[str], dimensions: int, loops: int, order: Sequence[int]
    ) -> Handle:
        return self._made(f"hoist operand {operand} of {target} out of {loops} loops as {list(order)}")

    def share_operands(self, target: Handle, operands: Sequence[int]) -> Handle:
        return self._made(f"share operands {list(operands)} of {target}")

    def peel(self, loop: Handle) -> None:
        self._emit(f"peel {loop}")

    def unroll(self, loop: Handle, factor: int) -> None:
        self._emit(f"unroll {loop} by {factor}")

    def vectorize(self, target: Handle, sizes: Sequence[int] = (), *, gathers: bool = False) -> None:
        del gathers
        self._emit(f"vectorize {target}{f' by {_numbers(sizes)}' if sizes else ''}")

    def apply_patterns(self, *patterns: str) -> None:
        self._emit("patterns")

    def cse(self) -> None:
        self._emit("cse")

    def run_pass(self, name: str) -> None:
        self._emit(f"pass {name}")

    def op(
        self,
        name: str,
        target: Handle | None = None,
        *,
        attributes: object = None,
        replaces_function: bool = False,
    ) -> None:
        self._emit(f"{name} on {target or 'the function'}")

    def annotate(self, target: Handle | None, name: str, attribute: str | None, *, at: Place | None = None) -> None:
        self._emit(f"annotate {target} with {name}", at)

    def place(self) -> Place:
        if not self._entries:
            self._emit("begin")
        return self._entries[-1]

    def _emit(self, line: str, at: Place | None = None) -> None:
        places = [index for index, entry in enumerate(self._entries) if entry is at]
        self._entries.insert(places[0] + 1 if places else len(self._entries), [line])

    def _made(self, line: str) -> str:
        self._handles += 1
        self._emit(f"h{self._handles} = {line}")
        return f"h{self._handles}"


def _numbers(sizes: Sequence[int]) -> list[str]:
    """Return sizes as text: sampled numbers, which are parameters of a script, by name."""
    return [getattr(size, "decision").name if hasattr(size, "decision") else str(size) for size in sizes]  # noqa: B009
