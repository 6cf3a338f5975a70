"""Attempts on files of the platform, of other tenants and of the system, and on shared files of its own."""

import mmap
import os
import sys
import tempfile

import numpy as np
import triton_python_backend_utils as pb_utils

from .attempts import Attempts, KeptOff, any_of, read, write

attempts = Attempts()


@attempts.named("have a descriptor that leads anywhere")
def _(targets):
    """Inherited descriptors: all except sockets, pipes and the tenant's own memory."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink("/proc/self/fd/" + name)
        except OSError:
            continue
        if (
            not target.startswith(("socket:", "pipe:", "/memfd:", "/dev/null", "/proc/", "anon_inode:"))
            and int(name) > 2
        ):
            found.append(target)
    if not found:
        raise KeptOff("none")
    return ", ".join(found)


for _what in ("model.py", "archives", "records", "keys", "objects", "logs", "instances", "secrets", "home"):
    attempts.named("read " + _what)(lambda targets, what=_what: any_of(targets[what], read))
    attempts.named("write " + _what)(lambda targets, what=_what: any_of(targets[what], write))


@attempts.named("write the Python environment")
def _(targets):
    packages = os.path.dirname(os.path.dirname(np.__file__))
    return any_of([np.__file__, packages, os.path.dirname(sys.executable), sys.prefix], write)


@attempts.named("write the product's Python files")
def _(targets):
    return any_of([pb_utils.__file__, os.path.dirname(pb_utils.__file__), *targets["product"]], write)


@attempts.named("write what the system has")
def _(targets):
    places = ["/", "/etc", "/etc/passwd", "/usr", "/usr/bin", "/sys", "/sys/fs/cgroup", "/proc/sys/kernel/core_pattern"]
    return any_of([*places, "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"], write)


@attempts.named("read what is root's alone")
def _(targets):
    return any_of(["/etc/shadow", "/root", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/proc/kcore"], read)


@attempts.named("open another tenant's scratch file")
def _(targets):
    return any_of(["/tmp/of-the-victim", "/dev/shm/of-the-victim", "/var/tmp/of-the-victim"], read)


def own_weights():
    return os.path.join(os.path.dirname(__file__), "weights.bin")


def overwrite(path):
    with open(path, "r+b") as file:
        file.write(b"\0" * 100)


@attempts.named("write into its own weights, which others share")
def _(targets):
    path = own_weights()
    ways = {
        "open": lambda: overwrite(path),
        "append": lambda: open(path, "ab").write(b"x"),
        "truncate": lambda: os.truncate(path, 10),
        "map": lambda: mmap.mmap(os.open(path, os.O_RDONLY), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        "by /proc": lambda: overwrite("/proc/self/fd/%d" % os.open(path, os.O_RDONLY)),
    }
    return any_of(ways, lambda name: ways[name]())


@attempts.named("change the mode or the times of its own weights, and no byte of them")
def _(targets):
    path = own_weights()
    ways = {
        "chmod": lambda: os.chmod(path, 0o666),
        "chmod by descriptor": lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o666),
        "utime": lambda: os.utime(path, (1, 1)),
        "chown": lambda: os.chown(path, os.getuid(), os.getgid()),
        "attribute": lambda: os.setxattr(path, "user.x", b"x"),
    }
    done = any_of(ways, lambda name: ways[name]())
    overwriting = attempts["write into its own weights, which others share"]
    try:
        return "even the bytes: " + overwriting(targets)
    except KeptOff:
        return done


@attempts.named("change its own archive's tree")
def _(targets):
    path = own_weights()
    directory = os.path.dirname(path)
    ways = {
        "remove": lambda: os.unlink(path),
        "rename": lambda: os.rename(path, path + ".old"),
        "add": lambda: write(directory),
        "cache": lambda: os.mkdir(os.path.join(directory, "__pycache__")),
    }
    return any_of(ways, lambda name: ways[name]())


@attempts.named("reach a file by a link of its own")
def _(targets):
    scratch = tempfile.mkdtemp()
    number = iter(range(1000))

    def through(path, link, use):
        name = os.path.join(scratch, str(next(number)))
        link(path, name)
        use(name)

    own = own_weights()
    ways = [
        *((path, os.symlink, read) for path in targets["model.py"] + targets["records"] + targets["keys"]),
        *((path, os.link, read) for path in targets["model.py"] + targets["records"]),
        (own, os.link, overwrite),
        (own, os.symlink, overwrite),
    ]
    return any_of(ways, lambda way: through(*way))
