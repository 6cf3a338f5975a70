"""A root directory for each tenant (a view).

It contains only the tenant's own files and the system, at the same paths for every tenant. Other users may not enter a home directory, so a
worker with its own user could not read model files there. In a view, these files are mounted, and everything else is hidden
(mount_namespaces(7)).
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

from .system_calls import call

if TYPE_CHECKING:
    from collections.abc import Iterable

_CLONE_NEWNS = 0x00020000
_CLONE_NEWIPC = 0x08000000
_MS_RDONLY = 1
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_REMOUNT = 1 << 5
_MS_BIND = 1 << 12
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18

_LINKS = (("/proc/self/fd", "dev/fd"), ("/proc/self/fd/0", "dev/stdin"), ("/proc/self/fd/1", "dev/stdout"))
_MORE_LINKS = (("/proc/self/fd/2", "dev/stderr"), ("/tmp", "dev/shm"), ("/tmp", "var/tmp"))


def mount(source: str | None, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Calls mount(2). Raises OSError."""
    encoded = [None if each is None else os.fsencode(each) for each in (source, target, kind)]
    call("mount", *encoded, flags, None if options is None else options.encode())


def point(source: str, target: str) -> None:
    """Creates the mount point for `source`: a directory or an empty file."""
    if stat.S_ISDIR(os.stat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def _outermost(paths: Iterable[str]) -> list[str]:
    """Returns the paths that are not inside another of the paths, parents first."""
    chosen = []
    for path in sorted({os.path.normpath(each) for each in paths if os.path.exists(each)}):
        if not any(path == each or path.startswith(each + "/") for each in chosen):
            chosen.append(path)
    return chosen


def enter(root: str, read: list[str], write: list[str], scratch_bytes: int, links: list[tuple[str, str]]) -> None:
    """Builds the view over the empty directory `root` and enters it.

    Requires root. `/tmp` is a new file system of `scratch_bytes` bytes. `links` are paths and their targets inside the view; an existing
    path is not replaced. Read-only paths are mounted read-only, because rules that allow writing in `/tmp` would otherwise apply to them
    too. Raises OSError, after which the process is unusable.
    """
    call("unshare", _CLONE_NEWNS | _CLONE_NEWIPC)
    # Makes the mounts invisible to other processes.
    mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
    for name in ("proc", "tmp", "dev", "var"):
        os.mkdir(os.path.join(root, name))
    # hidepid=2 hides the processes of other users.
    mount("proc", root + "/proc", "proc", 0, "hidepid=2")
    mount("tmpfs", root + "/tmp", "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=1777,size=%d" % scratch_bytes)
    for target, name in _LINKS + _MORE_LINKS:
        os.symlink(target, os.path.join(root, name))
    for path in read:
        # On most systems, /bin and similar paths are links.
        if path.count("/") == 1 and os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
    written = {os.path.normpath(each) for each in write}
    for path in _outermost(each for each in (*read, *write) if not os.path.lexists(root + each)):
        point(path, root + path)
        mount(path, root + path, None, _MS_BIND | (0 if path == "/sys" else _MS_REC))
        if path not in written:
            mount(None, root + path, None, _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID)
    for path, target in links:
        add_link(target, root + path)
    os.chroot(root)
    os.chdir("/tmp")


def add_link(target: str, path: str) -> None:
    """Creates a link, unless the path exists."""
    if os.path.lexists(path):
        return
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)
    except OSError as error:
        # A read-only mount cannot be extended. A program that uses the path gets an error from its own call.
        if error.errno != errno.EROFS:
            raise


def is_possible(directory: str) -> bool:
    """Returns whether this process may create such a view. Tries it in a child process with this empty directory."""
    if tuple(int(each) for each in os.uname().release.split("-")[0].split(".")[:2]) < (5, 8):
        # Before Linux 5.8, hidepid applies to the whole machine.
        return False
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            enter(directory, [], [], 1 << 16, [])
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0
