"""Paths that a process alone has, without root: it is moved into a root directory that is the machine's, with links added.

For code that names paths which this machine does not have. It takes a user namespace, which many kernels give everybody; in it the
process stays the user that it is, and can do no more than before. (Linux: user_namespaces(7).)
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
    """`root` is an empty directory; `links`: paths, and where they lead. What lies at such a path already stays. The process has one thread.

    Raises OSError; the process is of no use then. It has all capabilities in its namespace, which the caller drops.
    """
    user, group = os.geteuid(), os.getegid()
    call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
    # Groups cannot be mapped before they are given up for good.
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
    """Mounts what lies in the directory below `root`. Directories that links are to lie in are made anew, with all that is in them."""
    paths = [os.path.join(directory, name) for name in os.listdir(directory)]
    # First what holds the new root: mounted later, it would bring along all that lies there by then.
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
    """Whether this process may do that; tried in a process of its own, over this empty directory."""
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
