"""Controls how much freed memory the C library keeps. Libraries written in C and C++ use the C library's heap."""

from __future__ import annotations

import ctypes

_libc = ctypes.CDLL(None)
# All three functions are specific to glibc. Other C libraries keep less memory.
_trim = getattr(_libc, "malloc_trim", None)
_find_facts = getattr(_libc, "mallinfo2", None)
_set_option = getattr(_libc, "mallopt", None)
_TRIM_THRESHOLD = -1
_MAPPINGS_MAX = -4
_BYTES_MAX = 2**31 - 1

# Maximum size in bytes of a block that `fill_holes` allocates. Larger blocks are separate mappings.
_BLOCK_BYTES_MAX = 64 * 1024
_BLOCK_BYTES_MIN = 16
# Maximum number of free blocks that `fill_holes` allocates. A heap with more has mostly small ones between blocks in use.
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
    """Returns whole free pages of the heap to the system."""
    if _trim is not None:
        _trim(0)


def keep() -> None:
    """Keeps large freed blocks in this process until `trim`.

    Otherwise the system reclaims their pages and must clear them for the next run. ResNet-50 with a batch of 32 images then has 18,000 page
    faults and spends a fifth of its time in the kernel: 312 images a second, 374 with this setting (bench/rows/pytorch.ts).
    """
    if _set_option is not None:
        _set_option(_MAPPINGS_MAX, 0)
        _set_option(_TRIM_THRESHOLD, _BYTES_MAX)


def fill_holes() -> None:
    """Allocates all free blocks of the heap permanently, except the end of the heap.

    A process that is forked from this one then allocates at the end of the heap, where whole pages become free again. Without this, the
    process would use blocks between those of the zygote, and each block would copy a page: 9 MB when PyTorch loads a model.
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
