"""What `threading` does in a forked child, left out where the zygote forks a worker.

It makes locks anew that another thread may have held, and forgets the other threads: the zygote has none. Done in each worker, its twenty
functions would write to 85 pages that all workers share. In what the worker itself forks it is done as ever.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType


def _nothing() -> None:
    pass


def leave_out() -> CodeType | None:
    """In the zygote. Gives what `restore` needs; None where nothing was left out, because a thread may have been started here."""
    hook = getattr(threading, "_after_fork", None)
    if hook is None or threading.enumerate() != [threading.main_thread()]:
        return None
    left_out = hook.__code__
    hook.__code__ = _nothing.__code__
    return left_out


def restore(left_out: CodeType | None) -> None:
    """In a worker."""
    if left_out is not None:
        threading._after_fork.__code__ = left_out
