"""The memory that the C library has kept of what was freed."""

from __future__ import annotations

import ctypes

# Of glibc; other C libraries keep less and have none.
_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def trim() -> None:
    """Gives it back to the machine: reading a file and compiling a program leave megabytes of it behind."""
    if _trim is not None:
        _trim(0)
