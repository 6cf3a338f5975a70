"""Keeps a worker away from every process that is not its own descendant: their memory and their descriptors.

Through `/proc/<pid>` a process may otherwise open what another of its user has open: the arenas of other models above all. A Landlock
domain takes that away without a privilege; files stay as they were. What is asked for beyond that for workers of tenants is
`tenant.py`.
"""

import ctypes
import functools
import os

from . import landlock
from .system_calls import call

_RESTRICT_SELF = 446
_PR_SET_NO_NEW_PRIVS = 38
_ZERO = ctypes.c_long(0)


class Confinement:
    """Made once, in the zygote; each worker enters a domain of its own."""

    def __init__(self) -> None:
        """Raises OSError where the kernel has no Landlock, or one older than Linux 5.19."""
        abi = landlock.version()
        if abi < 2:
            raise OSError(0, "this kernel's Landlock would keep files from being moved between directories")
        self._ruleset = landlock.processes_only(abi).descriptor

        # Made and called once in advance (of no ruleset: it does nothing), so that workers write to fewer pages that they share.
        libc = ctypes.CDLL(None, use_errno=True)
        self._restrict = functools.partial(libc.syscall, ctypes.c_long(_RESTRICT_SELF))
        self._restrict(ctypes.c_long(-1), _ZERO)
        self._argument = ctypes.c_long(self._ruleset)

    def enter(self) -> None:
        """In a worker, for the rest of its life and for all that it starts. Raises OSError."""
        if self._restrict(self._argument, _ZERO) != 0:
            # Without privileges the kernel asks for the promise that none will be gained by running a program.
            call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            call("syscall", _RESTRICT_SELF, self._ruleset, 0)
        os.close(self._ruleset)
