"""Calls functions of the C library that Python does not provide. All raise OSError with the name of the function."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: int | bytes | None) -> int:
    """Calls the function `name` of the C library. Integers are passed as long, bytes and None as pointers."""
    result = getattr(_libc, name)(*(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), "%s: %s" % (name, os.strerror(ctypes.get_errno())))
    return result


def syscall(what: str, number: int, *arguments: int | bytes | None) -> int:
    """Calls the system call with this number; `what` is its name in errors."""
    result = _libc.syscall(*(ctypes.c_long(each) if isinstance(each, int) else each for each in (number, *arguments)))
    if result < 0:
        raise OSError(ctypes.get_errno(), "%s: %s" % (what, os.strerror(ctypes.get_errno())))
    return result
