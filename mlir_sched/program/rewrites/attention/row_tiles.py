"""Tile sizes of IREE's own code for the ops of an attention in one dispatch.

With the sizes that IREE 3.13 chooses itself, tiles of scores overflow the stack from 512 keys on. The sizes are
attributes of the ops (``lowering_config``, ``compilation_info``); a script takes the place of the code that has them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from iree.compiler import ir

COPIES = 4
"""Copies of a tile of scores that IREE's own code keeps on the stack."""
STACK_BYTES = 24 * 1024
"""Bytes of the stack for them; the rest of 32 KiB is for other values."""
MOST_ROWS, MOST_ROWS_OF_WORKGROUP = 2, 64
"""Most rows of a tile, and of a workgroup. The more rows a tile has, the fewer keys its products can take at once."""
_PIPELINE = "#iree_codegen.translation_info<pipeline = #iree_cpu.pipeline<DoubleTilingExpert>>"


@dataclass(frozen=True)
class RowTiles:
    """Tiles of rows that all ops of an attention share.

    Attributes:
        rows: Tile sizes by loop, a letter each.
        workgroup: Sizes of a workgroup's tile by loop.
    """

    rows: Mapping[str, int]
    workgroup: Mapping[str, int]

    @staticmethod
    def of(loops: str, rows: str, number: int, row_bytes: int) -> RowTiles:
        """Return tiles for a number of rows.

        Args:
            loops: The loops that all ops share.
            rows: The loop of these that is tiled; one iteration of the others is a tile.
            number: Its iterations.
            row_bytes: Size of a row of scores.
        """
        single = dict.fromkeys(loops, 1)
        most = max(1, min(MOST_ROWS, STACK_BYTES // (COPIES * row_bytes)))
        tile = max(size for size in range(1, most + 1) if number % size == 0)
        multiples = range(tile, max(tile, MOST_ROWS_OF_WORKGROUP) + 1, tile)
        return RowTiles({**single, rows: tile}, {**single, rows: max(size for size in multiples if number % size == 0)})

    def set(self, op: Any, walked: str, **levels: Mapping[str, int]) -> None:
        """Give an op its tile sizes.

        Args:
            op: The op.
            walked: Its loops, a letter each.
            levels: Further sizes by loop, by IREE's name of the level.
        """
        op.attributes["lowering_config"] = ir.Attribute.parse(self._config(walked, levels))

    def set_root(self, op: Any, walked: str, **levels: Mapping[str, int]) -> None:
        """Give the op that is distributed over workgroups its tile sizes; the arguments are those of :meth:`set`."""
        config = self._config(walked, {**levels, "distribution": self.workgroup})
        info = f"#iree_codegen.compilation_info<lowering_config = {config}, translation_info = {_PIPELINE}>"
        op.attributes["compilation_info"] = ir.Attribute.parse(info)

    def _config(self, walked: str, levels: Mapping[str, Mapping[str, int]]) -> str:
        common = {**self.rows, **levels.get("vector_common_parallel", {})}
        sizes = {**levels, "vector_common_parallel": common}
        lists = (f"{level} = {[by_loop.get(loop, 0) for loop in walked]}" for level, by_loop in sizes.items())
        return f"#iree_cpu.lowering_config<{', '.join(lists)}>"
