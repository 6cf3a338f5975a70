"""A tenant that tries whatever it can think of. The request's DO is JSON: the targets; TEXT is JSON: by attempt, what came of it."""

import fcntl
import json
import os
import resource
import socket
import time

import numpy as np
import triton_python_backend_utils as pb_utils

from . import exhaustion, files, privileges, processes, sockets
from .attempts import FOREIGN, checked, libc

FAMILIES = (files, processes, sockets, privileges, exhaustion)


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
        """Secrets that another tenant may search for."""
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind("\0galatea-victim")
        self.server.listen()
        checked(libc.shmget(0x6761, 4096, 0o1666))
        for place in ("/tmp", "/dev/shm", os.environ["TMPDIR"]):
            try:
                with open(place + "/of-the-victim", "w") as file:
                    file.write("secret")
            except PermissionError:
                pass  # The machine has no such resource, so access is impossible.
        return "offered"

    def weights(self, _):
        with open(files.own_weights(), "rb") as file:
            return str(sum(file.read()))

    def attempts(self, text):
        targets = json.loads(text)
        FOREIGN.update(targets["foreign"])
        outcomes = {}
        for family in FAMILIES:
            for name, function in family.attempts.items():
                try:
                    outcomes[name] = "reached: %s" % (function(targets) or "yes")
                except Exception as error:
                    outcomes[name] = "kept off: %s: %s" % (type(error).__name__, error)
        return json.dumps(outcomes)

    def leave_behind(self, _):
        """A process in its own session that removes every mark, and reports its pid."""
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
        """Allocates the requested memory in chunks, and writes to it."""
        pieces = []
        for _ in range(int(text) // (1 << 24)):
            pieces.append(np.ones(1 << 21, np.float64))
        return str(len(pieces))
