"""For programs of files: a model that is a file is taken for data, so its process reads its own files and what it runs with, and no more.

A process that entered this writes no file and opens no connection, and neither does what it starts. It is put on top of what a worker is
kept to anyway. (Landlock, of Linux 6.2 at least; where the kernel has none, files stay as they were.)
"""

from __future__ import annotations

import os
import struct

from . import landlock, tenant
from .system_calls import call

# Where shared libraries lie, and what libraries look at of the machine and of their own process; nothing of who uses it.
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system", "/sys/fs/cgroup",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/sys/kernel", "/proc/sys/vm",
    "/proc/self/cmdline", "/proc/self/maps", "/proc/self/status", "/proc/self/cgroup", "/proc/self/task",
)  # fmt: skip
# Links below a model's directory that are followed.
_LINKS_MAX = 10_000
# Before this version writing could not be held in full.
_ABI_MIN = 3
_CAPABILITY_VERSION_3 = 0x20080522
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: root reads models whoever owns them.
_KEPT = 1 << 1 | 1 << 2


def enter(directory: str) -> None:
    """While this process has one thread: rules hold for the thread that enters them and those that it starts.

    `directory` is the model's: read, with what links below it lead to.
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
    """With root's a process may open again, by their addresses, the arenas that it has mapped: Landlock has no rule for what has no path."""
    with open("/proc/self/status") as status:
        found = {
            name: int(value, 16) for name, _, value in (line.partition(":") for line in status if line[:3] == "Cap")
        }
    kept = found["CapPrm"] & _KEPT
    if kept != found["CapPrm"]:
        # The lower halves of what is effective, permitted and inheritable, then the upper ones.
        call("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), struct.pack("=6I", kept, kept, 0, 0, 0, 0))
