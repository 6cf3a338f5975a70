"""A tenant that tries whatever it can think of. The request's DO is JSON: the targets; TEXT is JSON: by attempt, what came of it."""

import array
import ctypes
import fcntl
import json
import mmap
import os
import resource
import signal
import socket
import stat
import sys
import tempfile
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

libc = ctypes.CDLL(None, use_errno=True)
ATTEMPTS = {}
# Names that no tenant should find in a directory.
FOREIGN = set()


class KeptOff(Exception):
    """What was tried did not reach its aim."""


def attempt(name):
    """The function of an attempt raises where it is kept off."""

    def note(function):
        ATTEMPTS[name] = function
        return function

    return note


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def call(name, *arguments):
    return checked(getattr(libc, name)(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))


def any_of(values, reach):
    """Reached where one of them is."""
    reached = []
    reasons = []
    for value in values:
        try:
            reach(value)
            reached.append(str(value))
        except Exception as error:
            reasons.append("%s: %s" % (type(error).__name__, error))
    if not reached:
        raise KeptOff("; ".join(sorted(set(reasons)))[:300] or "nothing to try")
    return ", ".join(reached)[:300]


def read(path):
    if os.path.isdir(path):
        if FOREIGN.isdisjoint(os.listdir(path)):
            raise KeptOff("nothing of others in it")
        return
    with open(path, "rb") as file:
        if not file.read(64):
            raise KeptOff("empty")


def write(path):
    if os.path.isdir(path):
        name = os.path.join(path, "left-by-a-tenant")
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)
        return
    with open(path, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(first)


@attempt("have a descriptor that leads anywhere")
def _(targets):
    """Descriptors that were left open: whatever is neither a socket, a pipe nor the tenant's own memory."""
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
    attempt("read " + _what)(lambda targets, what=_what: any_of(targets[what], read))
    attempt("write " + _what)(lambda targets, what=_what: any_of(targets[what], write))


@attempt("write the Python environment")
def _(targets):
    packages = os.path.dirname(os.path.dirname(np.__file__))
    return any_of([np.__file__, packages, os.path.dirname(sys.executable), sys.prefix], write)


@attempt("write the product's Python files")
def _(targets):
    return any_of([pb_utils.__file__, os.path.dirname(pb_utils.__file__), *targets["product"]], write)


@attempt("write what the system has")
def _(targets):
    places = ["/", "/etc", "/etc/passwd", "/usr", "/usr/bin", "/sys", "/sys/fs/cgroup", "/proc/sys/kernel/core_pattern"]
    return any_of([*places, "/proc/sysrq-trigger", "/proc/sys/vm/drop_caches"], write)


@attempt("read what is root's alone")
def _(targets):
    return any_of(["/etc/shadow", "/root", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda", "/proc/kcore"], read)


@attempt("see other processes")
def _(targets):
    return any_of(["/proc/%d/cmdline" % pid for pid in targets["pids"]], read)


for _name in ("environ", "maps", "mem", "fd", "io", "stack", "syscall", "auxv", "map_files"):
    attempt("read another process's " + _name)(
        lambda targets, name=_name: any_of(["/proc/%d/%s" % (pid, name) for pid in targets["pids"]], read)
    )


@attempt("enter another process's root or directory")
def _(targets):
    paths = ["/proc/%d/%s" % (pid, name) for pid in targets["pids"] for name in ("root", "cwd", "exe")]
    return any_of(paths, os.readlink)


@attempt("set limits of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0)))


@attempt("read limits of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: resource.prlimit(pid, resource.RLIMIT_NOFILE))


@attempt("make another process nicer")
def _(targets):
    return any_of(targets["pids"], lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 1))


@attempt("raise its own priority")
def _(targets):
    os.setpriority(os.PRIO_PROCESS, 0, -5)


@attempt("schedule another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: os.sched_setaffinity(pid, {0}))


@attempt("schedule itself in real time")
def _(targets):
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


@attempt("offer another process to the killer for want of memory")
def _(targets):
    return any_of(["/proc/%d/oom_score_adj" % pid for pid in targets["pids"]], write)


@attempt("keep itself from the killer for want of memory")
def _(targets):
    with open("/proc/self/oom_score_adj", "w") as score:
        score.write("-500")


@attempt("signal another process")
def _(targets):
    return any_of([*targets["pids"], *(-pid for pid in targets["pids"])], lambda pid: os.kill(pid, 0))


@attempt("signal another process by its descriptor")
def _(targets):
    return any_of(targets["pids"], lambda pid: signal.pidfd_send_signal(os.pidfd_open(pid), 0))


@attempt("take a descriptor of another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: checked(libc.syscall(438, os.pidfd_open(pid), 0, 0)))


@attempt("trace another process")
def _(targets):
    return any_of(targets["pids"], lambda pid: call("ptrace", 16, pid, 0, 0))


@attempt("read another process's memory by a system call")
def _(targets):
    data = ctypes.create_string_buffer(8)
    local = array.array("Q", [ctypes.addressof(data), 8])

    def vm_read(pid):
        remote = array.array("Q", [0x400000, 8])
        call("process_vm_readv", pid, local.buffer_info()[0], 1, remote.buffer_info()[0], 1, 0)

    return any_of(targets["pids"], vm_read)


def ask(connection, text):
    connection.settimeout(5)
    connection.sendall(text.encode())
    answer = connection.recv(4096).decode(errors="replace")
    if not answer.startswith("HTTP/1.1 2"):
        raise KeptOff(answer[:60])


def ask_socket(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        ask(connection, "GET /models HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")


@attempt("list tenants on the container's socket")
def _(targets):
    return any_of(targets["sockets"], ask_socket)


@attempt("create a model through the platform's port")
def _(targets):
    body = json.dumps({"ModelName": "stolen", "ExecutionRoleArn": "arn:aws:iam::000000000000:role/x"})
    head = (
        "POST / HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nX-Amz-Target: SageMaker.CreateModel\r\nConnection: close\r\n"
        % targets["port"]
    )
    head += "Content-Type: application/x-amz-json-1.1\r\nContent-Length: %d\r\n\r\n" % len(body)
    with socket.create_connection(("127.0.0.1", targets["port"]), 5) as connection:
        ask(connection, head + body)


@attempt("connect to a service of this machine")
def _(targets):
    socket.create_connection(("127.0.0.1", targets["service"]), 5).close()


@attempt("listen on a port")
def _(targets):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()


@attempt("listen on a port that no bind chose")
def _(targets):
    with socket.socket() as server:
        server.listen()


@attempt("reach a datagram service of this machine")
def _(targets):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"x", ("127.0.0.1", targets["service"]))


@attempt("read packets")
def _(targets):
    kinds = [(socket.AF_PACKET, socket.SOCK_RAW, 0), (socket.AF_INET, socket.SOCK_RAW, 1)]
    return any_of(kinds, lambda kind: socket.socket(*kind).close())


@attempt("connect to another tenant's abstract socket")
def _(targets):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect("\0galatea-victim")


@attempt("open another tenant's shared memory")
def _(targets):
    libc.shmget.restype = ctypes.c_int
    checked(libc.shmget(0x6761, 0, 0))


@attempt("open another tenant's scratch file")
def _(targets):
    return any_of(["/tmp/of-the-victim", "/dev/shm/of-the-victim", "/var/tmp/of-the-victim"], read)


def own_weights(targets):
    return os.path.join(os.path.dirname(__file__), "weights.bin")


def overwrite(path):
    with open(path, "r+b") as file:
        file.write(b"\0" * 100)


@attempt("write into its own weights, which others share")
def _(targets):
    path = own_weights(targets)
    ways = {
        "open": lambda: overwrite(path),
        "append": lambda: open(path, "ab").write(b"x"),
        "truncate": lambda: os.truncate(path, 10),
        "map": lambda: mmap.mmap(os.open(path, os.O_RDONLY), 0, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE),
        "by /proc": lambda: overwrite("/proc/self/fd/%d" % os.open(path, os.O_RDONLY)),
    }
    return any_of(ways, lambda name: ways[name]())


@attempt("change the mode or the times of its own weights, and no byte of them")
def _(targets):
    path = own_weights(targets)
    ways = {
        "chmod": lambda: os.chmod(path, 0o666),
        "chmod by descriptor": lambda: os.fchmod(os.open(path, os.O_RDONLY), 0o666),
        "utime": lambda: os.utime(path, (1, 1)),
        "chown": lambda: os.chown(path, os.getuid(), os.getgid()),
        "attribute": lambda: os.setxattr(path, "user.x", b"x"),
    }
    done = any_of(ways, lambda name: ways[name]())
    overwriting = ATTEMPTS["write into its own weights, which others share"]
    try:
        return "even the bytes: " + overwriting(targets)
    except KeptOff:
        return done


@attempt("change its own archive's tree")
def _(targets):
    path = own_weights(targets)
    directory = os.path.dirname(path)
    ways = {
        "remove": lambda: os.unlink(path),
        "rename": lambda: os.rename(path, path + ".old"),
        "add": lambda: write(directory),
        "cache": lambda: os.mkdir(os.path.join(directory, "__pycache__")),
    }
    return any_of(ways, lambda name: ways[name]())


@attempt("reach a file by a link of its own")
def _(targets):
    scratch = tempfile.mkdtemp()
    number = iter(range(1000))

    def through(path, link, use):
        name = os.path.join(scratch, str(next(number)))
        link(path, name)
        use(name)

    own = own_weights(targets)
    ways = [
        *((path, os.symlink, read) for path in targets["model.py"] + targets["records"] + targets["keys"]),
        *((path, os.link, read) for path in targets["model.py"] + targets["records"]),
        (own, os.link, overwrite),
        (own, os.symlink, overwrite),
    ]
    return any_of(ways, lambda way: through(*way))


@attempt("become another user")
def _(targets):
    ways = [lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0]), lambda: os.setresuid(0, 0, 0)]
    if os.getuid() == 0:
        return "it is root"
    return any_of(ways, lambda way: way())


@attempt("mount, or make a namespace to mount in")
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


@attempt("make a device")
def _(targets):
    os.mknod(os.path.join(tempfile.mkdtemp(), "zero"), 0o666 | stat.S_IFCHR, os.makedev(1, 5))


@attempt("raise the limits of its own")
def _(targets):
    names = ["RLIMIT_NPROC", "RLIMIT_CORE", "RLIMIT_RTTIME"]
    infinite = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    return any_of(names, lambda name: resource.setrlimit(getattr(resource, name), infinite))


@attempt("leave its control groups")
def _(targets):
    def leave(path):
        with open(path, "w") as processes:
            processes.write("0")

    return any_of(targets["groups"], leave)


@attempt("start processes without limit")
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


@attempt("start threads without limit")
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


@attempt("fill the disk")
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


@attempt("dump core")
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


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        words = pb_utils.get_input_tensor_by_name(request, "DO").as_numpy().reshape(-1)[0].decode()
        value = pb_utils.get_input_tensor_by_name(request, "VALUE").as_numpy()
        text = getattr(self, words.split(" ")[0])(words.partition(" ")[2])
        out = pb_utils.Tensor("OUT", value)
        return pb_utils.InferenceResponse([out, pb_utils.Tensor("TEXT", np.array([text], object))])

    def pid(self, _):
        return str(os.getpid())

    def where(self, _):
        return __file__

    def offer(self, _):
        """What another tenant may look for."""
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind("\0galatea-victim")
        self.server.listen()
        checked(libc.shmget(0x6761, 4096, 0o1666))
        for place in ("/tmp", "/dev/shm", os.environ["TMPDIR"]):
            try:
                with open(place + "/of-the-victim", "w") as file:
                    file.write("secret")
            except PermissionError:
                pass  # It has no such place, so nobody can reach it there.
        return "offered"

    def weights(self, _):
        with open(own_weights(None), "rb") as file:
            return str(sum(file.read()))

    def attempts(self, text):
        targets = json.loads(text)
        FOREIGN.update(targets["foreign"])
        outcomes = {}
        for name, function in ATTEMPTS.items():
            try:
                outcomes[name] = "reached: %s" % (function(targets) or "yes")
            except Exception as error:
                outcomes[name] = "kept off: %s: %s" % (type(error).__name__, error)
        return json.dumps(outcomes)

    def leave_behind(self, _):
        """A process in a session of its own that takes off every mark it can, and tells its pid."""
        told, tell = os.pipe()
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                for limit in ((10**6, 10**6), (resource.RLIM_INFINITY, resource.RLIM_INFINITY)):
                    try:
                        resource.setrlimit(resource.RLIMIT_RTTIME, limit)
                    except (OSError, ValueError):
                        pass
                for name in os.listdir("/proc/self/fd"):
                    if int(name) != tell:
                        try:
                            fcntl.fcntl(int(name), fcntl.F_SETOWN, 0)
                            os.close(int(name))
                        except OSError:
                            pass
                os.write(tell, b"%d" % os.getpid())
                time.sleep(600)
            os._exit(0)
        os.wait()
        return os.read(told, 16).decode()

    def take_memory(self, text):
        """As much as is asked for, in pieces, written to."""
        pieces = []
        for _ in range(int(text) // (1 << 24)):
            pieces.append(np.ones(1 << 21, np.float64))
        return str(len(pieces))
