"""Runs the fault that the request's DO selects; "echo" returns VALUE. This is the model for all kinds of faults."""

import ctypes
import os
import sys
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.directory = args["model_repository"]
        # A tenant's model may not write to its own directory.
        self.meeting = os.environ.get("FAULTS_MEETING", self.directory)
        self.kept = []
        self.done = []

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        words = pb_utils.get_input_tensor_by_name(request, "DO").as_numpy().reshape(-1)[0].decode().split(" ")
        value = pb_utils.get_input_tensor_by_name(request, "VALUE").as_numpy()
        self.done.append(request.request_id())
        self.request = request
        try:
            text = getattr(self, words[0])(value, *words[1:])
        finally:
            self.request = None
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("OUT", value), pb_utils.Tensor("TEXT", np.array([text or ""], object))]
        )

    def echo(self, value):
        pass

    def pid(self, value):
        return str(os.getpid())

    def executed(self, value):
        """The ids of all requests that reached this process."""
        return ",".join(self.done)

    def hold(self, value, name):
        """Writes that it runs, and runs until the test creates the file `<name>.go` next to the model."""
        path = os.path.join(self.meeting, name)
        with open(path + ".running", "w") as file:
            file.write(str(os.getpid()))
        while not os.path.exists(path + ".go"):
            time.sleep(0.005)

    def until_left(self, value, name):
        """Runs until its client has disconnected, and then writes the file `<name>.left`."""
        path = os.path.join(self.meeting, name)
        with open(path + ".running", "w") as file:
            file.write(str(os.getpid()))
        while not self.request.is_cancelled():
            time.sleep(0.005)
        with open(path + ".left", "w") as file:
            file.write(str(os.getpid()))

    def spin(self, value):
        """Holds the interpreter lock forever: no Python signal handler runs."""
        usleep = ctypes.PyDLL(None).usleep
        with open(os.path.join(self.directory, "spin.running"), "w") as file:
            file.write(str(os.getpid()))
        while True:
            usleep(900000)

    def segfault(self, value):
        print("about to read address zero", file=sys.stderr, flush=True)
        ctypes.string_at(0)

    def exit(self, value, code):
        os._exit(int(code))

    def abort(self, value):
        os.abort()

    def give_up(self, value):
        raise ValueError("raised on request")

    def system_exit(self, value):
        sys.exit(3)

    def chatter(self, value, megabytes):
        line = "x" * 1023 + "\n"
        for _ in range(int(megabytes)):
            sys.stdout.write(line * 512)
            sys.stderr.write(line * 512)
        sys.stdout.flush()
        sys.stderr.flush()

    def one_line(self, value, megabytes):
        sys.stdout.write("y" * (int(megabytes) << 20))
        sys.stdout.flush()

    def keep(self, value):
        self.kept.append(value)

    def kept_sums(self, value):
        return ",".join(str(float(one.sum(dtype=np.float64))) for one in self.kept)

    def forget(self, value):
        self.kept.clear()

    def orphan(self, value):
        """Starts a process that is detached as far as possible and stays."""
        if os.fork() == 0:
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        os.wait()

    def daemon(self, value, *environment):
        """Starts a program with a child in its own session, like a daemon, and returns its pid."""
        script = "import os, subprocess; child = subprocess.Popen(['sleep', '600']); print(os.getpid(), flush=True); child.wait()"
        start = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', sys.argv[1]], start_new_session=True)"
        import subprocess

        env = {"PATH": os.environ["PATH"]} if environment else None
        starter = subprocess.Popen([sys.executable, "-c", start, script], stdout=subprocess.PIPE, text=True, env=env)
        pid = starter.stdout.readline().strip()
        starter.wait()
        return pid

    def close_descriptors(self, value):
        os.closerange(3, 256)

    def scribble(self, value):
        """Writes invalid data to the worker's socket."""
        for name in os.listdir("/proc/self/fd"):
            try:
                if int(name) > 2 and os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                    os.write(int(name), b"\xff" * 4096)
            except OSError:
                pass
        time.sleep(600)

    def reach(self, value, *pids):
        """Returns the names of the open accesses to other processes, if any."""
        doors = {
            "descriptors": lambda process: [
                open(process + "/fd/" + name, "rb") for name in os.listdir(process + "/fd")
            ],
            "memory": lambda process: open(process + "/mem", "rb"),
            "signals": lambda process: os.kill(int(os.path.basename(process)), 0),
        }
        found = []
        for pid in pids:
            for name, door in doors.items():
                try:
                    door("/proc/" + pid)
                    found.append(name)
                except PermissionError:
                    pass
        return " ".join(found)

    def own_business(self, value):
        """Returns the permitted operations on files and processes."""
        import subprocess

        below = os.path.join(self.directory, "below")
        os.makedirs(below, exist_ok=True)
        with open(os.path.join(self.directory, "moved"), "w") as file:
            file.write("whole")
        os.rename(os.path.join(self.directory, "moved"), os.path.join(below, "moved"))
        os.link(os.path.join(below, "moved"), os.path.join(self.directory, "again"))
        child = subprocess.Popen(["sleep", "600"])
        with open("/proc/%d/environ" % child.pid) as environment:
            environment.read()
        child.terminate()
        child.wait()
        with open("/proc/self/environ") as environment:
            return "done" if environment.read() else "empty"

    def out_of_memory(self, value):
        raise MemoryError("no room for one more tensor")

    def keep_and_hold(self, value, name):
        self.kept.append(value)
        self.hold(value, name)
