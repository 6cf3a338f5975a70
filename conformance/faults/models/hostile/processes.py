"""Attempts to see, read, trace, signal or delay other processes."""

import array
import ctypes
import os
import resource
import signal

from .attempts import Attempts, any_of, call, checked, libc, read, write

attempts = Attempts()


@attempts.named("see other processes")
def _(targets):
    return any_of(["/proc/%d/cmdline" % pid for pid in targets["pids"]], read)


for _name in ("environ", "maps", "mem", "fd", "io", "stack", "syscall", "auxv", "map_files"):
    attempts.named("read another process's " + _name)(
        lambda targets, name=_name: any_of(["/proc/%d/%s" % (pid, name) for pid in targets["pids"]], read)
    )


@attempts.named("enter another process's root or directory")
def _(targets):
    paths = ["/proc/%d/%s" % (pid, name) for pid in targets["pids"] for name in ("root", "cwd", "exe")]
    return any_of(paths, os.readlink)


@attempts.named("set limits of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)))


@attempts.named("read limits of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE))


@attempts.named("raise the nice value of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 1))


@attempts.named("schedule another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: os.sched_setaffinity(pid, {0}))


@attempts.named("offer another process to the OOM killer")
def _(targets):
    return any_of(["/proc/%d/oom_score_adj" % pid for pid in targets["pids"]], write)


@attempts.named("signal another process")
def _(targets):
    return any_of([*targets["pids"], *(-pid for pid in targets["pids"])], lambda pid: os.kill(pid, 0))


@attempts.named("signal another process by its descriptor")
def _(targets):
    return any_of(targets["pids"], lambda pid: signal.pidfd_send_signal(os.pidfd_open(pid), 0))


@attempts.named("duplicate a descriptor of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: checked(libc.syscall(438, os.pidfd_open(pid), 0, 0)))


@attempts.named("trace another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: call("ptrace", 16, pid, 0, 0))


@attempts.named("read another process's memory by a system call")
def _(targets):
    data = ctypes.create_string_buffer(8)
    local = array.array("Q", [ctypes.addressof(data), 8])

    def vm_read(pid):
        remote = array.array("Q", [0x400000, 8])
        call("process_vm_readv", pid, local.buffer_info()[0], 1, remote.buffer_info()[0], 1, 0)

    return any_of(targets["pids"], vm_read)
