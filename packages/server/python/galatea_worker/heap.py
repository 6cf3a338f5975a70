"""Controls the memory that the C library keeps after it was freed: the heap of libraries written in C and C++."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)
# Both functions are glibc's; other C libraries keep less.
_trim = getattr(_libc, "malloc_trim", None)
_find_facts = getattr(_libc, "mallinfo2", None)
_set_option = getattr(_libc, "mallopt", None)
_TRIM_THRESHOLD = -1
_MAPPINGS_MAX = -4
_BYTES_MAX = 2**31 - 1

# Larger blocks are separate mappings.
_BLOCK_BYTES_MAX = 64 * 1024
_BLOCK_BYTES_MIN = 16
# A heap with more free blocks than this has mostly small ones between blocks that live long.
_BLOCKS_MAX = 400_000


class _Facts(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    )


def trim() -> None:
    """Returns free whole pages of the heap to the system."""
    if _trim is not None:
        _trim(0)


def keep() -> None:
    """Keeps large freed blocks in this process, until `trim`.

    Otherwise the system takes them back, and clears every page again for the next run: a batch of 32 through ResNet-50 for pictures of 64
    by 64 had 18,000 page faults, and a fifth of its time was the kernel's. (bench/rows/pytorch.ts: 312 pictures a second with them, 374
    without.)
    """
    if _set_option is not None:
        _set_option(_MAPPINGS_MAX, 0)
        _set_option(_TRIM_THRESHOLD, _BYTES_MAX)


def fill_holes() -> None:
    """Allocates all free blocks for ever, except for the heap's end.

    A process that is forked from this one then allocates at that end, where blocks are adjacent and whole pages become free again. In the
    holes between this process's blocks each block would copy a page: 9 MB when PyTorch loads a model.
    """
    if _find_facts is None:
        return
    trim()
    _find_facts.restype = _Facts
    allocate, give_back = _libc.malloc, _libc.free
    allocate.restype = ctypes.c_void_p
    allocate.argtypes = (ctypes.c_size_t,)
    give_back.argtypes = (ctypes.c_void_p,)
    give_back.restype = None
    find_end = _libc.sbrk
    find_end.restype = ctypes.c_void_p
    end = find_end(0)
    size = _BLOCK_BYTES_MAX
    for _ in range(_BLOCKS_MAX):
        block = allocate(size)
        if block is not None and block < end:
            continue
        give_back(block)
        if size == _BLOCK_BYTES_MIN:
            break
        size = max(size * 3 // 4 // 16 * 16, _BLOCK_BYTES_MIN)
    trim()
