"""Runs the lifecycle of a worker several times in the zygote, before workers are forked.

At first calls, CPython specializes bytecode, caches attribute lookups and binds library functions, by writing to existing memory. After the
warm-up, this has happened in memory that all workers share. Otherwise each worker would copy the memory pages.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import sys

import numpy as np

from . import datatypes, process_title, wire, worker
from .thread_pools import Pools

# Number of runs. CPython 3.11 specializes the code of a function after 8 calls; a few more calls fill the caches of that code.
_TIMES = 12
_FP32 = datatypes.NAMES.index("FP32")
_ARENA_BYTES = 4096
_INLINE_BYTES_MAX = 4096
_RESPONSES = (wire.HELLO, wire.LOADED, wire.INITIALIZED, wire.RESULT, wire.RESULT)
_RESPONSES_BYTES_MAX = 1 << 16
_MODULES = ("1.model", "1")
_MODEL_DIRECTORY = os.path.join(os.path.dirname(__file__), "warm_up_model")


def warm_up() -> None:
    """Runs the warm-up, which changes only the interpreter's caches. Raises an exception if a worker could not run here."""
    before = sys.path[:], sys.dont_write_bytecode, process_title.current_title()
    sys.dont_write_bytecode = True
    # Excludes existing objects from the garbage collections of all workers, which would write to the objects' memory pages.
    gc.freeze()
    for _ in range(_TIMES):
        _run_worker()
        sys.path[:] = before[0]
    gc.unfreeze()
    sys.dont_write_bytecode = before[1]
    process_title.restore_title(before[2])


def _run_worker() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.sendall(_FRAMES)
        ours.shutdown(socket.SHUT_WR)
        one = worker.Worker(theirs.detach(), os.open("/dev/zero", os.O_RDWR), Pools.none())
        try:
            one.run()
        finally:
            one.channel.close()
            for name in _MODULES:
                sys.modules.pop(name, None)
        _check(ours.recv(_RESPONSES_BYTES_MAX))


def _check(frames: bytes) -> None:
    at = 0
    for expected in _RESPONSES:
        size, kind, _, _, status = wire.HEADER.unpack_from(frames, at)
        if kind != expected or (kind == wire.RESULT and status != wire.STATUS_RESPONSES):
            raise RuntimeError("the warm-up of a worker failed: %r" % frames[at : at + size])
        at += size


# Number of blocks that are allocated for each size; a larger number had no measurable effect.
_FILLED = 200


def fill_holes() -> list[bytes]:
    """Allocates small free blocks between blocks in use. They stay allocated as long as the result is kept.

    Otherwise a worker would allocate its first objects in these blocks, and each would copy a memory page: 120 kB of private memory for
    each model.
    """
    empty = sys.getsizeof(b"")
    return [bytes(size - empty) for size in range(48, 513, 16) for _ in range(_FILLED)]


def _frames() -> bytes:
    load = {
        "title": "warm-up (model of %s)" % _MODEL_DIRECTORY,
        "arenaBytes": _ARENA_BYTES,
        "inlineBytesMax": _INLINE_BYTES_MAX,
        "callsMax": 1,
        "backendConfig": {},
        "packageHint": "",
        "versionDirectory": _MODEL_DIRECTORY,
        "moduleDirectory": _MODEL_DIRECTORY,
        "path": [_MODEL_DIRECTORY],
        "package": "1",
        "module": "model",
    }
    initialize = {
        "path": os.path.join(_MODEL_DIRECTORY, "model.py"),
        "inputs": ["WARM_UP"],
        "outputs": ["WARM_UP"],
        "decoupled": False,
        "unreadResponsesMax": 16,
        "args": {"model_config": "{}", "model_instance_name": "warm_up"},
    }
    return b"".join([_step(wire.LOAD, load), _step(wire.INITIALIZE, initialize), _execution(), _execution()])


def _step(kind: int, body: dict) -> bytes:
    return wire.frame(kind, json.dumps(body).encode("utf-8"))


def _execution() -> bytes:
    """Returns an EXECUTE frame with one request that has one tensor of 16 numbers."""
    data = np.zeros(16, np.float32).tobytes()
    request = wire.REQUEST.pack(1, wire.ALL_OUTPUTS, 0, 0, 0, 0, 0, 0, 0, 0)
    tensor = wire.TENSOR.pack(0, _FP32, 1, wire.INLINE, 0, len(data)) + wire.DIMS[1].pack(16)
    body = request + tensor
    body += bytes(-len(body) & 15)
    inline_offset = wire.HEADER_BYTES + wire.EXECUTE_HEAD_BYTES + len(body)
    return wire.frame(wire.EXECUTE, wire.EXECUTE_HEAD.pack(0, 0, inline_offset, 0) + body + data, count=1)


_FRAMES = _frames()
