"""The way of a small request through a worker, gone some times over before workers are forked.

CPython adapts its bytecode to what it meets, in place: done here it is done once, in memory that all workers share, and not in a copy of
each worker's (some 100 kB of private memory for each model).
"""

from __future__ import annotations

import sys

import numpy as np

from . import datatypes, objects, outputs, wire

# After 8 calls CPython 3.11 adapts a function's code, and a few more calls fill its caches.
_TIMES = 24
_FP32 = datatypes.NAMES.index("FP32")


def rehearse() -> None:
    """Nothing is left of it but what the interpreter has learnt."""
    frame = memoryview(_frame())
    names = ("REHEARSED",)
    small = outputs.Outputs(names, 4096, None, None)
    for _ in range(_TIMES):
        _, spaces, decoded, inline_offset = wire.decode_execute(frame)
        tensors = objects.tensors_of_wire(names, decoded[0].inputs, bytearray(frame[inline_offset:]), [])
        request = objects.request_of_wire(decoded[0], tensors, names, (0, 0))
        response = objects.InferenceResponse([objects.Tensor(names[0], tensors[0].as_numpy() + 1)])
        answers = small.answers(0, [request], [response], spaces, [])
        wire.encode_result(0, [], small.settled(0, answers, spaces, []), (0, 0, 0))


# Blocks of each size that are taken: more of them changed nothing that could be measured.
_FILLED = 200


def fill_holes() -> list[bytes]:
    """Takes the small blocks that starting has left free between others, as long as the result is kept.

    What a worker makes first would lie in them, and each would give it a copy of its page (some 120 kB of private memory for each model).
    """
    empty = sys.getsizeof(b"")
    return [bytes(size - empty) for size in range(48, 513, 16) for _ in range(_FILLED)]


def _frame() -> bytes:
    """EXECUTE of one request with one tensor of 16 numbers."""
    data = np.zeros(16, np.float32).tobytes()
    request = wire.REQUEST.pack(1, wire.ALL_OUTPUTS, 0, 0, 0, 0, 0, 0, 0, 0)
    tensor = wire.TENSOR.pack(0, _FP32, 1, wire.INLINE, 0, len(data)) + wire.DIMS[1].pack(16)
    body = request + tensor
    body += bytes(-len(body) & 15)
    inline_offset = wire.HEADER_BYTES + wire.EXECUTE_HEAD_BYTES + len(body)
    return wire.frame(wire.EXECUTE, wire.EXECUTE_HEAD.pack(0, 0, inline_offset, 0) + body + data, count=1)
