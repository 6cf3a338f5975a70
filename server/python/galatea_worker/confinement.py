"""Keeps a worker away from every process that is not its own descendant: their memory and their descriptors.

Through `/proc/<pid>` a process may otherwise open what another of its user has open: the arenas of other models above all. A Landlock
domain takes that away without a privilege; files stay as they were. (Linux: Documentation/userspace-api/landlock.rst.)
"""

import ctypes
import functools
import os
import struct

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_ACCESS_FS_REFER = 1 << 13
_SCOPE_SIGNAL = 1 << 1
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)
_ZERO = ctypes.c_long(0)


def _call(name, *arguments):
    """The C library's function; raises OSError."""
    result = getattr(_libc, name)(*(ctypes.c_long(each) if isinstance(each, int) else each for each in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


class Confinement:
    """Made once, in the zygote; each worker enters a domain of its own."""

    def __init__(self):
        """Raises OSError where the kernel has no Landlock, or one older than Linux 5.19."""
        version = _call("syscall", _CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
        if version < 2:
            raise OSError(0, "this kernel's Landlock would keep files from being moved between directories")
        # A domain has to handle something. Moving files between directories is the one right that is gone unless it is given back.
        attributes = struct.pack("=Q", _ACCESS_FS_REFER)
        if version >= 6:
            attributes = struct.pack("=QQQ", _ACCESS_FS_REFER, 0, _SCOPE_SIGNAL)
        self._ruleset = _call("syscall", _CREATE_RULESET, attributes, len(attributes), 0)
        root = os.open("/", os.O_PATH | os.O_CLOEXEC)
        try:
            rule = struct.pack("=Qi", _ACCESS_FS_REFER, root)
            _call("syscall", _ADD_RULE, self._ruleset, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(root)

        # Made and called once in advance (of no ruleset: it does nothing), so that workers write to fewer pages that they share.
        self._restrict = functools.partial(_libc.syscall, ctypes.c_long(_RESTRICT_SELF))
        self._restrict(ctypes.c_long(-1), _ZERO)
        self._argument = ctypes.c_long(self._ruleset)

    def enter(self):
        """In a worker, for the rest of its life and for all that it starts. Raises OSError."""
        if self._restrict(self._argument, _ZERO) != 0:
            # Without privileges the kernel asks for the promise that none will be gained by running a program.
            _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            _call("syscall", _RESTRICT_SELF, self._ruleset, 0)
        os.close(self._ruleset)
