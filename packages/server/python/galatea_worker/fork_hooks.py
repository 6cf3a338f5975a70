"""Skips the `threading` module's work in a child process that the zygote forks.

The module replaces locks that other threads may have held, and removes the other threads. This is unnecessary here, because the zygote has
only one thread, and the module's twenty functions would write to 85 memory pages that all workers share. Processes that a worker forks
still do this work.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType


def _nothing() -> None:
    pass


def disable() -> CodeType | None:
    """Disables the hook in the zygote.

    Returns the argument for `restore`. Returns None if the hook must stay enabled, because a thread may have been started.
    """
    hook = getattr(threading, "_after_fork", None)
    if hook is None or threading.enumerate() != [threading.main_thread()]:
        return None
    left_out = hook.__code__
    hook.__code__ = _nothing.__code__
    return left_out


def restore(left_out: CodeType | None) -> None:
    """Enables the hook again, in a worker."""
    if left_out is not None:
        threading._after_fork.__code__ = left_out
