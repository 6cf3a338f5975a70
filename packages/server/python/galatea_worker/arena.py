"""The namespace's shared memory in this process, and the blocks of it that the server has lent to this process."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Optional, Tuple

    Lent = Tuple[
        int, int, int, int, Optional["LentBlock"]
    ]  # lent_id, flags, offset, size, and the block if it was created


class LentBlock(np.ndarray):
    """A block that the server has lent to this process.

    Every array over the block has this object as its `base`, so the object is deleted with the last of these arrays. A subclass of ndarray
    is needed, because numpy shortens chains of views that have the same type and would skip a plain array.
    """

    # True if other readers use these bytes too. The bytes are then copied before the model can write to them.
    is_shared = False
    # True if the model has a writable array over these bytes.
    is_viewed = False

    def __array_finalize__(self, parent: np.ndarray | None) -> None:
        self.lent_id = -1
        self.released = None

    def __del__(self) -> None:
        if self.lent_id != -1:
            self.released(self.lent_id)


class Arena:
    """Maps the arena's memory file, creates arrays over it, and returns their offsets."""

    def __init__(self, fd: int, capacity: int) -> None:
        self._map = mmap.mmap(fd, capacity, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        self._capacity = capacity
        self._address = np.frombuffer(self._map, np.uint8).__array_interface__["data"][0]

    def lend(self, lent_id: int, is_shared: int, offset: int, size: int, released: Callable[[int], None]) -> LentBlock:
        """Returns the block as bytes. The thread that drops the last view calls `released(lent_id)`."""
        block = LentBlock((size,), np.uint8, self._map, offset)
        block.lent_id = lent_id
        block.released = released
        if is_shared:
            block.is_shared = True
        return block

    def bytes_at(self, offset: int, size: int) -> np.ndarray:
        """Returns an array over a range. The array does not keep the block lent."""
        return np.ndarray((size,), np.uint8, self._map, offset)

    def numbers(self, offset: int, count: int) -> memoryview:
        """Returns a range as an array of doubles. Each double is read and written atomically."""
        return memoryview(self._map)[offset : offset + 8 * count].cast("d")

    def offset_of(self, array: np.ndarray) -> int:
        """Returns the offset of a contiguous array in the arena; -1 if it is not in the arena."""
        offset = array.__array_interface__["data"][0] - self._address
        return offset if 0 <= offset < self._capacity else -1

    def write_array(self, offset: int, array: np.ndarray) -> None:
        """Copies an array, which need not be contiguous, to `offset` in packed form."""
        np.copyto(np.ndarray(array.shape, array.dtype, self._map, offset), array)

    def write_bytes(self, offset: int, data: bytes | memoryview) -> None:
        """Copies bytes to `offset`."""
        self._map[offset : offset + len(data)] = data
