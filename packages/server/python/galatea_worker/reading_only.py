"""Confines a process that runs a model file.

Such a model counts as data: its process can read its own files and the libraries that it needs, but no other files. The process and its
descendants cannot write files or open connections. Applied in addition to the worker's confinement. Requires Landlock of Linux 6.2; on
older kernels, access to files is not restricted.
"""

from __future__ import annotations

import os
import struct

from . import landlock, tenant
from .system_calls import call

# Directories of shared libraries, and files about the machine and the process itself that libraries read. They contain no information about
# users.
_SYSTEM = (
    "/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/etc/ld.so.cache", "/etc/localtime", "/sys/devices/system", "/sys/fs/cgroup",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/sys/kernel", "/proc/sys/vm",
    "/proc/self/cmdline", "/proc/self/maps", "/proc/self/status", "/proc/self/cgroup", "/proc/self/task",
)  # fmt: skip
# Maximum number of symbolic links in a model's directory that are followed.
_LINKS_MAX = 10_000
# Minimum ABI version of Landlock. Earlier versions cannot restrict all ways of writing.
_ABI_MIN = 3
_CAPABILITY_VERSION_3 = 0x20080522
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, with which root reads the files of any owner.
_KEPT = 1 << 1 | 1 << 2


def enter(directory: str) -> None:
    """Applies the confinement.

    Must be called while the process has only one thread, because rules apply only to the calling thread and to threads that are started
    later. `directory` is the model's directory, which may be read, as may the targets of links in it.
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
    """Drops root's capabilities except those for reading files.

    With the other capabilities, a process could open its mapped arenas again by their addresses, because Landlock has no rules for files
    without a path.
    """
    with open("/proc/self/status") as status:
        found = {
            name: int(value, 16) for name, _, value in (line.partition(":") for line in status if line[:3] == "Cap")
        }
    kept = found["CapPrm"] & _KEPT
    if kept != found["CapPrm"]:
        # The lower halves of the effective, permitted and inheritable sets, then their upper halves.
        call("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), struct.pack("=6I", kept, kept, 0, 0, 0, 0))
