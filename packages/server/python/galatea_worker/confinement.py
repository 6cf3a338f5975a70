"""Isolates a worker from all processes except its own descendants.

Without this isolation, a process could use `/proc/<pid>` to open the open files of other processes of its user, in particular the arenas of
other models. A Landlock domain prevents that and requires no privilege. Access to files does not change. `tenant.py` has the additional
confinement of tenants' workers.
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
    """Isolation for workers. Created once in the zygote; each worker then enters a domain of its own."""

    def __init__(self) -> None:
        """Raises OSError if the kernel has no Landlock, or is older than Linux 5.19."""
        abi = landlock.version()
        if abi < 2:
            raise OSError(0, "this kernel's Landlock would keep files from being moved between directories")
        self._ruleset = landlock.process_isolation_rules(abi).descriptor

        # Created and called once in the zygote, so that workers write to fewer shared memory pages. Without a ruleset, the call has no
        # effect.
        libc = ctypes.CDLL(None, use_errno=True)
        self._restrict = functools.partial(libc.syscall, ctypes.c_long(_RESTRICT_SELF))
        self._restrict(ctypes.c_long(-1), _ZERO)
        self._argument = ctypes.c_long(self._ruleset)

    def enter(self) -> None:
        """Confines this worker and all its descendants permanently. Raises OSError."""
        if self._restrict(self._argument, _ZERO) != 0:
            # The kernel requires this setting from a process without privileges, so that the process cannot gain privileges by running a
            # program.
            call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            call("syscall", _RESTRICT_SELF, self._ruleset, 0)
        os.close(self._ruleset)
