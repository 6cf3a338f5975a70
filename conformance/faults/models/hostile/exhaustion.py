"""Attempts to use more than a tenant's share of the machine."""

import os
import resource
import signal
import tempfile
import threading

from .attempts import Attempts, KeptOff

attempts = Attempts()


@attempts.named("start processes without limit")
def _(targets):
    pids = []
    try:
        for _ in range(400):
            pid = os.fork()
            if pid == 0:
                signal.pause()
                os._exit(0)
            pids.append(pid)
    except OSError as error:
        raise KeptOff("%s after %d" % (error, len(pids))) from error
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)


@attempts.named("start threads without limit")
def _(targets):
    enough = threading.Event()
    threads = []
    try:
        for _ in range(400):
            thread = threading.Thread(target=enough.wait)
            thread.start()
            threads.append(thread)
    except RuntimeError as error:
        raise KeptOff("%s after %d" % (error, len(threads))) from error
    finally:
        enough.set()
        for thread in threads:
            thread.join()


@attempts.named("fill the disk")
def _(targets):
    most = 0
    block = b"\0" * (1 << 20)
    for place in ("/tmp", "/var/tmp", "/dev/shm", os.environ["HOME"], os.environ["TMPDIR"], "."):
        names = []
        written = 0
        try:
            for _ in range(1000):
                name = os.path.join(place, "fill-%d" % len(names))
                with open(name, "wb") as file:
                    names.append(name)
                    for _ in range(8):
                        written += file.write(block)
                        most = max(most, written)
                if written > targets["scratchBytes"] * 2:
                    return "%d bytes" % written
        except OSError:
            pass
        finally:
            for name in names:
                os.unlink(name)
    raise KeptOff("%d bytes at a time" % most)


@attempts.named("dump core")
def _(targets):
    directory = tempfile.mkdtemp()
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
        except OSError:
            pass
        os.chdir(directory)
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
    _, status = os.waitpid(pid, 0)
    if not os.WCOREDUMP(status) and not os.listdir(directory):
        raise KeptOff("ended by %d without a core" % os.WTERMSIG(status))
