"""An interpreter that has imported the usual modules and forks workers, started by `galatea_zygote.py`.

The zygote checks that it has only one thread whenever it forks. It completes its imports before it reports that it is ready, and never runs
model code. Each worker is forked twice, so that its parent is the server (a subreaper). The server is then notified of the worker's end at
once, and the worker survives the end of the zygote.
"""

from __future__ import annotations

import array
import faulthandler
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
from typing import TYPE_CHECKING

from . import thread_pools

if TYPE_CHECKING:
    from .confinement import Confinement
    from .tenant import Tenancy

_BEFORE = thread_pools.limit()

import numpy as np  # noqa: E402
import triton_python_backend_utils  # noqa: E402, F401

from . import fork_hooks, heap, warm_up, wire, worker  # noqa: E402

# Minimum number of descriptors: the socket, the lifeline, the output and the arena. The descriptor of the model's file may follow.
_DESCRIPTORS_PER_FORK = 4
_FORK_BYTES_MAX = 1 << 16
# RLIMIT_RTTIME of a worker is this number of microseconds (eleven days, which no process reaches) plus the number of the worker's family.
# The worker's descendants inherit the limit, so that the server can find and kill all of them.
_FAMILY_MARK = 10**12
_LENGTH = struct.Struct("<i")


def _thread_count() -> int:
    return len(os.listdir("/proc/self/task"))


def _preload(names: list[str]) -> list[str]:
    """Imports modules that models of this environment have used. A module that cannot be imported is reported and skipped."""
    failed = []
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - third-party import code may raise anything
            failed.append("%s: %s" % (name, error))
    return failed


def _confinement() -> tuple[Confinement | None, str | None]:
    """Returns the confinement for workers and None. If it is not available, returns None and the reason."""
    try:
        from .confinement import Confinement

        return Confinement(), None
    except (ImportError, OSError) as error:
        return None, str(error)


def _tenancy(options: str) -> tuple[Tenancy | None, dict[str, object] | None]:
    """Returns the tenancy for workers of tenants, and the properties of this machine."""
    if options == "":
        return None, None
    from . import tenant

    options = json.loads(options)
    return tenant.Tenancy(options.pop("cgroups")), tenant.facts(**options)


class Zygote:
    """Handles fork requests on `control`. `tenancy` is for workers with a plan, `confinement` for all others."""

    def __init__(
        self,
        control: socket.socket,
        confinement: Confinement | None,
        tenancy: Tenancy | None,
        pools: thread_pools.Pools,
    ) -> None:
        self._control = control
        self._pools = pools
        self._confinement = confinement
        self._tenancy = tenancy
        # The kernel's default limit, or the limit that `tenant.py` has set for an interpreter of a tenant.
        self._hard_mark = resource.getrlimit(resource.RLIMIT_RTTIME)[1]
        self._marks = self._hard_mark in (resource.RLIM_INFINITY, _FAMILY_MARK + 2**32)
        self._left_out = fork_hooks.disable()
        self._buffer = bytearray()
        self._descriptors = []

    def run(self) -> None:
        """Handles requests. Returns when the server has closed the socket."""
        buffer = self._buffer
        while self._receive():
            while len(buffer) >= wire.HEADER_BYTES:
                size, kind, files, family, _ = wire.HEADER.unpack_from(buffer, 0)
                if kind != wire.ZYGOTE_FORK or not wire.HEADER_BYTES <= size <= _FORK_BYTES_MAX or files > 1:
                    raise struct.error("unknown record %d of %d bytes" % (kind, size))
                if len(buffer) < size:
                    break
                plan = json.loads(bytes(buffer[wire.HEADER_BYTES : size])) if size > wire.HEADER_BYTES else None
                del buffer[:size]
                own = self._descriptors[: _DESCRIPTORS_PER_FORK + files]
                del self._descriptors[: _DESCRIPTORS_PER_FORK + files]
                self._on_fork(family, own, plan)

    def _receive(self) -> bool:
        data, ancillary, _, _ = self._control.recvmsg(4096, socket.CMSG_SPACE(64 * 4))
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                found = array.array("i")
                found.frombytes(payload[: len(payload) - len(payload) % found.itemsize])
                self._descriptors.extend(found)
        self._buffer.extend(data)
        return bool(data)

    def _on_fork(self, family: int, descriptors: list[int], plan: dict | None) -> None:
        try:
            threads = _thread_count()
            if threads != 1:
                raise OSError("the zygote has %d threads; it forks only while it has one" % threads)
            # Set in the zygote, so that workers need not write to shared memory pages for it.
            if self._marks:
                resource.setrlimit(resource.RLIMIT_RTTIME, (_FAMILY_MARK + family, self._hard_mark))
            pid = self._fork(descriptors, plan)
            self._control.send(wire.frame(wire.ZYGOTE_FORKED, b"", 0, family, pid))
        except OSError as error:
            self._control.send(wire.frame(wire.ZYGOTE_FORK_FAILED, str(error).encode("utf-8"), 0, family))
        finally:
            for descriptor in descriptors:
                os.close(descriptor)

    def _fork(self, descriptors: list[int], plan: dict | None) -> int:
        """Forks twice.

        Returns the pid of the worker, whose parent is then the server. Raises OSError if the system rejects the fork. The worker leaves the
        zygote's process group before it reports its pid, because the end of the zygote ends that group.
        """
        reader, writer = os.pipe()
        middle = os.fork()
        if middle == 0:
            try:
                if os.fork() == 0:
                    self._begin_worker(descriptors, (reader, writer), plan)
            except OSError as error:
                os.write(writer, _LENGTH.pack(-(error.errno or 1)))
            finally:
                os._exit(0)
        os.close(writer)
        packed_pid = os.read(reader, _LENGTH.size)
        os.close(reader)
        os.waitpid(middle, 0)
        if len(packed_pid) != _LENGTH.size:
            raise OSError("the worker died before it began")
        (pid,) = _LENGTH.unpack(packed_pid)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        return pid

    def _begin_worker(self, descriptors: list[int], pipe: tuple[int, int], plan: dict | None) -> None:
        """Runs a worker in this process. Does not return."""
        status = 1
        try:
            os.setsid()
            fork_hooks.restore(self._left_out)
            os.write(pipe[1], _LENGTH.pack(os.getpid()))
            for descriptor in pipe:
                os.close(descriptor)
            self._become_worker(descriptors, plan)
            status = 0
        except BaseException:  # noqa: BLE001 - the code of the zygote must not continue in a worker
            import traceback

            traceback.print_exc()
        finally:
            try:
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                os._exit(status)

    def _become_worker(self, descriptors: list[int], plan: dict | None) -> None:
        sock, lifeline, output, arena, *files = descriptors
        # The server holds the other end of the lifeline. When it is closed, the kernel kills the worker's process group.
        fcntl.fcntl(lifeline, 10, signal.SIGKILL)  # F_SETSIG
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpid())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | fcntl.FASYNC)
        poller = select.poll()
        poller.register(lifeline, select.POLLIN)
        if poller.poll(0):
            os._exit(1)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        self._control.close()
        if "random" in sys.modules:
            sys.modules["random"].seed()
        if "numpy.random" in sys.modules:
            np.random.seed()
        if self._marks:
            # From now on, a process without privileges cannot raise the mark. A process that lowers the mark is detected.
            mark = resource.getrlimit(resource.RLIMIT_RTTIME)[0]
            resource.setrlimit(resource.RLIMIT_RTTIME, (mark, mark))
        if plan is not None:
            self._tenancy.enter(plan)
        elif self._confinement is not None:
            self._confinement.enter()
        worker.start(sock, arena, self._pools, files[0] if files else None)


def main() -> None:
    """Prepares the zygote and serves until the server closes the socket."""
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    # Enabled in the zygote for all workers. In a worker, it would copy memory pages that workers share.
    faulthandler.enable(all_threads=True)
    faulthandler.register(signal.SIGUSR2, all_threads=True)
    tenancy, machine = _tenancy(sys.argv[2])
    failed = _preload(sys.argv[3:])
    # Model code in Triton finds this value.
    sys.argv[:] = [""]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(line_buffering=True)
    thread_pools.restore(_BEFORE)
    pools = thread_pools.Pools()
    confinement, unconfined = _confinement()
    ready = {
        "pid": os.getpid(),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "numpy": np.__version__,
        "threads": _thread_count(),
        "failed": failed,
        "unconfined": unconfined,
        "machine": machine,
    }
    warm_up.warm_up()
    gc.collect()
    _filler = warm_up.fill_holes()
    gc.freeze()
    heap.fill_holes()
    control.sendall(wire.frame(wire.ZYGOTE_READY, json.dumps(ready).encode("utf-8")))
    Zygote(control, confinement, tenancy, pools).run()
