"""Controls how much freed memory the C library keeps. Libraries in C and C++ use it."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)
# Both functions are specific to glibc; other C libraries keep less memory.
_trim = getattr(_libc, "malloc_trim", None)
_find_facts = getattr(_libc, "mallinfo2", None)
_set_option = getattr(_libc, "mallopt", None)
_TRIM_THRESHOLD = -1
_MAPPINGS_MAX = -4
_BYTES_MAX = 2**31 - 1

# Larger blocks are separate mappings.
_BLOCK_BYTES_MAX = 64 * 1024
_BLOCK_BYTES_MIN = 16
# A heap with more free blocks than this has mostly small ones between blocks in use.
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
    """Keeps large freed blocks in this process until `trim`.

    Otherwise the system takes their pages back, and must clear them again for the next run. ResNet-50 with a batch of 32 pictures then has
    18,000 page faults and spends a fifth of its time in the kernel (bench/rows/pytorch.ts: 312 pictures a second, 374 with this setting).
    """
    if _set_option is not None:
        _set_option(_MAPPINGS_MAX, 0)
        _set_option(_TRIM_THRESHOLD, _BYTES_MAX)


def fill_holes() -> None:
    """Allocates all free blocks of the heap permanently, except its end.

    A process that is forked from this one then allocates at the end of the heap, where whole pages become free again. Without this, blocks
    between those of the zygote would be used, and each would copy a page: 9 MB when PyTorch loads a model.
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
