"""Confines a process that runs a model file.

Such a model counts as data, so its process reads its own files and those that it runs with, and nothing else. It writes no file and opens
no connection, and neither do its descendants. Applied in addition to the worker's confinement. (Landlock, from Linux 6.2 on; without it
access to files is not restricted.)
"""

from __future__ import annotations

import os
import struct

from . import landlock, tenant
from .system_calls import call

# Directories of shared libraries, and files about the machine and the own process that libraries read; nothing about
# the machine's users.
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system", "/sys/fs/cgroup",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/sys/kernel", "/proc/sys/vm",
    "/proc/self/cmdline", "/proc/self/maps", "/proc/self/status", "/proc/self/cgroup", "/proc/self/task",
)  # fmt: skip
# Links below a model's directory that are followed.
_LINKS_MAX = 10_000
# Before this version not all kinds of writing could be restricted.
_ABI_MIN = 3
_CAPABILITY_VERSION_3 = 0x20080522
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: root reads models of any owner.
_KEPT = 1 << 1 | 1 << 2


def enter(directory: str) -> None:
    """Call this while the process has one thread: rules apply to the thread that enters them and its later ones.

    `directory` is the model's, which may be read, including the targets of links below it.
    """
    try:
        abi = landlock.version()
    except OSError:
        return
    if abi < _ABI_MIN:
        return
    read = [*_SYSTEM, *tenant.environment_paths(), directory, *_linked(directory)]
    _drop_capabilities()
    landlock.tenant(abi, {"read": read, "write": [], "devices": tenant.DEVICES, "tcp": []}).enter()


def _linked(directory: str) -> list[str]:
    found = []
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = os.path.join(parent, name)
            if os.path.islink(path) and len(found) < _LINKS_MAX:
                found.append(os.path.realpath(path))
    return found


def _drop_capabilities() -> None:
    """With root's capabilities a process may open its mapped arenas again by their addresses:

    Landlock has no rule for files without a path.
    """
    with open("/proc/self/status") as status:
        found = {
            name: int(value, 16) for name, _, value in (line.partition(":") for line in status if line[:3] == "Cap")
        }
    kept = found["CapPrm"] & _KEPT
    if kept != found["CapPrm"]:
        # The lower halves of effective, permitted and inheritable, then the upper ones.
        call("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), struct.pack("=6I", kept, kept, 0, 0, 0, 0))
