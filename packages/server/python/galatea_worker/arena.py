"""The namespace's shared memory in this process, and the blocks of it that are lent to this process."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, Tuple

    Lent = Tuple[
        int, int, int, int, Optional["LentBlock"]
    ]  # lent_id, flags, offset, size, and the block where it is at hand


class LentBlock(np.ndarray):
    """A block lent by the server.

    Every array over it has it as `base`; after the last one, this object is deleted. numpy shortens chains of views only through arrays
    of one type, so a subclass stays in the chain (a plain array would be skipped, and the end of the last view could not be noticed).
    """

    # True if others read these bytes as well: they are copied before a model can write to them.
    is_shared = False
    # True if the model has a writable array over them.
    is_viewed = False

    def __array_finalize__(self, parent: np.ndarray | None) -> None:
        self.lent_id = -1
        self.released = None

    def __del__(self) -> None:
        if self.lent_id != -1:
            self.released(self.lent_id)


class Arena:
    """Maps the memory file; creates arrays over it and locates them."""

    def __init__(self, fd: int, capacity: int) -> None:
        self._map = mmap.mmap(fd, capacity, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._capacity = capacity
        self._address = np.frombuffer(self._map, np.uint8).__array_interface__["data"][0]

    def lend(self, lent_id: int, is_shared: int, offset: int, size: int, released: Callable[[int], None]) -> LentBlock:
        """Returns the block as bytes; `released(lent_id)` is called from the thread that drops the last view."""
        block = LentBlock((size,), np.uint8, self._map, offset)
        block.lent_id = lent_id
        block.released = released
        if is_shared:
            block.is_shared = True
        return block

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """Returns an array over a range that keeps no loan."""
        return np.ndarray((size,), np.uint8, self._map, offset)

    def numbers(self, offset: int, count: int) -> memoryview:
        """Returns the doubles in a range; each is read and written atomically."""
        return memoryview(self._map)[offset : offset + 8 * count].cast("d")

    def offset_of(self, array: np.ndarray) -> int:
        """Returns the offset of a contiguous array in the arena, -1 when it is elsewhere."""
        offset = array.__array_interface__["data"][0] - self._address
        return offset if 0 <= offset < self._capacity else -1

    def write_array(self, offset: int, array: np.ndarray) -> None:
        """Copies an array, contiguous or not, packed to `offset`."""
        np.copyto(np.ndarray(array.shape, array.dtype, self._map, offset), array)

    def write_bytes(self, offset: int, data: bytes | memoryview) -> None:
        """Copies bytes to `offset`."""
        self._map[offset : offset + len(data)] = data
