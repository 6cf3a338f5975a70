"""Landlock: rules that a process applies to itself and its descendants.

They require no privilege (Documentation/userspace-api/landlock.rst in Linux).
"""

from __future__ import annotations

import os
import stat
import struct

from .system_calls import call, syscall

_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
_CREATE_RULESET_VERSION = 1
_RULE_PATH_BENEATH = 1
_RULE_NET_PORT = 2
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE = 1 << 0
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_READ_DIRECTORY = 1 << 3
# The rights REMOVE_DIR to MAKE_SYM without MAKE_CHAR and MAKE_BLOCK. They allow removing and creating entries of every kind except devices.
_CHANGE_DIRECTORY = 0b1011110110000
_REFER = 1 << 13
_TRUNCATE = 1 << 14
_IOCTL_DEVICE = 1 << 15
_ALL_OF_FIRST_VERSION = (1 << 13) - 1
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE

_READ = _EXECUTE | _READ_FILE | _READ_DIRECTORY
_WRITE = _READ | _WRITE_FILE | _CHANGE_DIRECTORY | _REFER | _TRUNCATE
_DEVICE = _READ | _WRITE_FILE | _IOCTL_DEVICE

_BIND_TCP = 1 << 0
_CONNECT_TCP = 1 << 1
_SCOPE_ABSTRACT_SOCKETS = 1 << 0
_SCOPE_SIGNALS = 1 << 1


def version() -> int:
    """Returns the Landlock ABI version of the kernel. Raises OSError if the kernel has no Landlock."""
    return syscall("landlock", _CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)


def handled_files(abi: int) -> int:
    """Returns the file rights that rules of this ABI version can restrict. All other rights stay allowed."""
    rights = _ALL_OF_FIRST_VERSION
    for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
        if abi >= since:
            rights |= right
    return rights


class Ruleset:
    """Builds a set of rules, which `enter` applies to this process."""

    def __init__(self, abi: int, files: int, tcp: int, scopes: int) -> None:
        """Creates a set that restricts these rights; 0 leaves a category of rights unrestricted."""
        self._files = files
        attributes = (files, tcp if abi >= 4 else 0, scopes if abi >= 6 else 0)
        size = 24 if abi >= 6 else 16 if abi >= 4 else 8
        data = struct.pack("=QQQ", *attributes)[:size]
        self.descriptor = syscall("landlock_create_ruleset", _CREATE_RULESET, data, size, 0)

    def allow(self, path: str, rights: int) -> None:
        """Allows these rights for a file, or for all files in a directory. A missing path is ignored."""
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return
        try:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                rights &= _OF_FILES
            rule = struct.pack("=Qi", rights & self._files, descriptor)
            syscall("landlock_add_rule", _ADD_RULE, self.descriptor, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(descriptor)

    def allow_connect(self, port: int) -> None:
        rule = struct.pack("=QQ", _CONNECT_TCP, port)
        syscall("landlock_add_rule", _ADD_RULE, self.descriptor, _RULE_NET_PORT, rule, 0)

    def enter(self) -> None:
        """Applies the rules to this process permanently. Raises OSError."""
        call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        syscall("landlock_restrict_self", _RESTRICT_SELF, self.descriptor, 0)
        os.close(self.descriptor)


def process_isolation_rules(abi: int) -> Ruleset:
    """Returns rules that isolate the process from other processes (memory, descriptors, signals). They do not restrict files and network."""
    # A set must restrict at least one right. _REFER (moving files between directories) is chosen, because it is always denied unless it is
    # allowed.
    ruleset = Ruleset(abi, _REFER, 0, _SCOPE_SIGNALS)
    ruleset.allow("/", _REFER)
    return ruleset


def tenant(abi: int, rules: dict[str, list]) -> Ruleset:
    """Returns the rules of a tenant.

    `rules` contains the paths to read, the paths to write, and the paths of devices. `tcp` contains the ports for connections; None allows
    connecting and listening on all ports.
    """
    tcp = 0 if rules["tcp"] is None else _BIND_TCP | _CONNECT_TCP
    ruleset = Ruleset(abi, handled_files(abi), tcp, _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS)
    for paths, rights in ((rules["read"], _READ), (rules["write"], _WRITE), (rules["devices"], _DEVICE)):
        for path in paths:
            ruleset.allow(path, rights)
    if abi >= 4:
        for port in rules["tcp"] or ():
            ruleset.allow_connect(port)
    return ruleset
