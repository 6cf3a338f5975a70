"""Attempts to gain privileges: users, mounts, devices, priorities, limits."""

import os
import resource
import stat
import tempfile

from .attempts import Attempts, KeptOff, any_of, call

attempts = Attempts()


@attempts.named("raise its own priority")
def _(targets):
    os.setpriority(os.PRIO_PROCESS, 0, -5)


@attempts.named("schedule itself in real time")
def _(targets):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


@attempts.named("exempt itself from the OOM killer")
def _(targets):
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("-500")


@attempts.named("become another user")
def _(targets):
    ways = [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0)]
    if os.getuid() == 0:
        return "it is root"
    return any_of(ways, lambda way: way())


@attempts.named("mount, or create a mount namespace")
def _(targets):
    def in_child(way):
        pid = os.fork()
        if pid == 0:
            try:
                way()
                os._exit(0)
            except BaseException:
                os._exit(1)
        if os.waitpid(pid, 0)[1] != 0:
            raise KeptOff("refused")

    def in_user_namespace():
        call("unshare", 0x10000000 | 0x20000)
        call("mount", b"none", b"/tmp", b"tmpfs", 0, None)

    ways = {
        "mount": lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "unshare": lambda: call("unshare", 0x20000),
        "chroot": lambda: os.chroot("/tmp"),
        "in a user namespace": in_user_namespace,
    }
    return any_of(ways, lambda name: in_child(ways[name]))


@attempts.named("make a device")
def _(targets):
    os.mknod(os.path.join(tempfile.mkdtemp(), "zero"), 0o666 | stat.S_IFCHR, os.makedev(1, 5))


@attempts.named("raise the limits of its own")
def _(targets):
    names = ["RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_RTTIME"]
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    return any_of(names, lambda name: resource.setrlimit(getattr(resource, name), infinite))


@attempts.named("leave its control groups")
def _(targets):
    def leave(path):
        with open(path, "w") as processes:
            processes.write("0")

    return any_of(targets["groups"], leave)
