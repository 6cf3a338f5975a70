"""Sets a worker's title in `ps` and `top` to its model. Without this, the title would be the zygote's command line."""

from __future__ import annotations

import ctypes

_PR_SET_NAME = 15
_PR_GET_NAME = 16
# Field numbers in /proc/self/stat, counted after the name in brackets (proc(5)).
_ARGUMENTS_BEGIN = 45
_ARGUMENTS_END = 46


def _find_area() -> tuple[int, int]:
    """Returns the address and size of the memory from which the kernel reads this process's command line."""
    try:
        with open("/proc/self/stat", "rb") as stat:
            fields = stat.read().rpartition(b")")[2].split()
        begin, end = int(fields[_ARGUMENTS_BEGIN]), int(fields[_ARGUMENTS_END])
    except (OSError, IndexError, ValueError):
        return 0, 0
    return (begin, end - begin) if 0 < begin < end else (0, 0)


# Opened before the zygote forks, because opening a library creates a class, which would copy memory pages that workers share.
_prctl = ctypes.CDLL(None).prctl
# Determined before the zygote forks, because a confined worker cannot read them any more. They are the same in every worker.
_BEGIN, _SIZE = _find_area()


def show(title: str) -> None:
    """Sets the command line to `title`, truncated to the available memory, and the process name to the first word of `title`, up to 15
    bytes.

    `top` and `ps -o comm` show the process name. Only writes to the memory page that contains the arguments.
    """
    text = title.encode("utf-8", "replace").replace(b"\0", b" ")
    _prctl(_PR_SET_NAME, ctypes.c_char_p(text.split(b" ", 1)[0][:15]), 0, 0, 0)
    if _SIZE > 1:
        # The last byte stays 0. Otherwise the kernel would read on into the environment variables.
        ctypes.memmove(_BEGIN, text[: _SIZE - 1].ljust(_SIZE, b"\0"), _SIZE)


def current_title() -> tuple[bytes, bytes]:
    """Returns the current title, for `restore_title`."""
    name = ctypes.create_string_buffer(16)
    _prctl(_PR_GET_NAME, name, 0, 0, 0)
    return name.value, ctypes.string_at(_BEGIN, _SIZE) if _SIZE > 1 else b""


def restore_title(shown: tuple[bytes, bytes]) -> None:
    """Restores a title."""
    name, line = shown
    _prctl(_PR_SET_NAME, ctypes.c_char_p(name), 0, 0, 0)
    ctypes.memmove(_BEGIN, line, len(line))
