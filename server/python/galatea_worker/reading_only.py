"""For programs of files: a model that is a file is taken for data, so its process reads its own files and what it runs with, and no more.

A process that entered this writes no file and opens no connection, and neither does what it starts. It is put on top of what a worker is
kept to anyway. (Landlock; where the kernel has none, as the log says, files stay as they were.)
"""

from __future__ import annotations

import os

from . import landlock, tenant

# Where shared libraries lie, and how the loader finds them; nothing of who uses the machine.
_SYSTEM = ("/usr", "/lib", "/lib32", "/lib64", "/nix/store", "/sys", "/proc", "/etc/ld.so.cache", "/etc/localtime")
# Links below a model's directory that are followed.
_LINKS_MAX = 10_000
# Before this version writing could not be held in full.
_ABI_MIN = 3


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
    landlock.tenant(abi, {"read": read, "write": [], "devices": tenant.DEVICES, "tcp": []}).enter()


def _linked(directory: str) -> list[str]:
    found = []
    for parent, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = os.path.join(parent, name)
            if os.path.islink(path) and len(found) < _LINKS_MAX:
                found.append(os.path.realpath(path))
    return found
