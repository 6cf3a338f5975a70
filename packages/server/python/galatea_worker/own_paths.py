"""Gives a process additional paths without root.

Moves the process to a root directory that equals the machine's, with links added. Used for code that contains paths which do not exist on
this machine. Requires a user namespace, which many kernels allow for all users. In it, the process has the same user and no additional
rights (user_namespaces(7)).
"""

from __future__ import annotations

import os

from .system_calls import call
from .view import add_link, mount, point

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUSER = 0x10000000
_MS_NOSUID = 2
_MS_NODEV = 4
_MS_BIND = 1 << 12
_MS_REC = 1 << 14
_MS_PRIVATE = 1 << 18


def enter(root: str, links: list[tuple[str, str]]) -> None:
    """Builds a root directory over the empty directory `root` and enters it.

    `links` are paths and their targets; an existing path is not replaced. The process must have only one thread. Raises OSError, after
    which the process is unusable. On success, the process has all capabilities inside its namespace, and the caller must drop them.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
    # The kernel allows mapping groups only after setgroups was denied permanently.
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", "%d %d 1" % (user, user)),
        ("gid_map", "%d %d 1" % (group, group)),
    ):
        with open("/proc/self/" + name, "w") as file:
            file.write(text)
    mount(None, "/", None, _MS_REC | _MS_PRIVATE)
    mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=755,size=1m")
    _mirror("/", root, [path for path, _ in links])
    for path, target in links:
        add_link(target, root + path)
    os.chroot(root)
    os.chdir("/")


def _mirror(directory: str, root: str, links: list[str]) -> None:
    """Mounts the entries of a directory in `root`.

    A directory that will contain links is created as a new directory, with all its entries.
    """
    paths = [os.path.join(directory, name) for name in os.listdir(directory)]
    # The directory that contains the new root is mounted first. If it were mounted later, it would include all earlier mounts.
    for path in sorted(paths, key=lambda path: not root.startswith(path + "/")):
        if os.path.islink(path):
            os.symlink(os.readlink(path), root + path)
        elif os.path.isdir(path) and any(link.startswith(path + "/") for link in links):
            os.mkdir(root + path)
            _mirror(path, root, links)
        else:
            point(path, root + path)
            mount(path, root + path, None, _MS_BIND | _MS_REC)


def is_possible(root: str) -> bool:
    """Returns whether this process may enter such a root directory. Tries it in a child process with the empty directory `root`."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            enter(root, [("/opt/ml/model", "/")])
            status = 0
        except OSError:
            pass
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1] == 0
