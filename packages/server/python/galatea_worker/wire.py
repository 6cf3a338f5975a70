"""The frames between the server and a worker, and between the server and a zygote, specified in WIRE.md.

The server's side is `packages/server/src/backends/python/wire.ts`. Both sides are tested against the same bytes in `conformance/vectors`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, List, Tuple, Union

    Block = Tuple[int, int, int]  # lent_id, offset, size
    Loan = Tuple[int, int, int, int]  # lent_id, flags, offset, size
    Input = Tuple[int, int, Tuple[int, ...], int, int, int]  # name_index, datatype, shape, block, offset, size
    Output = Tuple[int, int, Tuple[int, ...], int, int, Union[bytes, int]]  # as Input, but bytes if inline
    EncodedResponse = Union[Tuple[str, int, str], Tuple[str, str, List[Any]]]  # see `_encode_responses`


# The server kills a worker that exceeds these limits.
FRAME_BYTES_MAX = 64 * 1024 * 1024
RESPONSE_FRAME_BYTES_MAX = 4 * 1024 * 1024
# Limits of the JSON text in CALL and CONTROL frames in bytes, and of the number of names of inputs, outputs and files in them.
TEXT_BYTES_MAX = 4 * 1024 * 1024
NAMES_MAX = 4096
# Maximum number of parameters of all responses in one RESULT frame, and of one request.
PARAMETERS_MAX = 100_000
OUTPUTS_MAX = 2**17

# Kinds of frames from the server to a worker.
LOAD = 1
COMPLETE = 2
INITIALIZE = 3
EXECUTE = 4
SPACE = 5
FINALIZE = 6
CANCEL = 7
CREDIT = 8
CALL_RESPONSE = 9
CALL_SPACE = 10
CONTROL_RESULT = 11
METRIC_RESULT = 12
# Kinds of frames from the server with responses to a model's calls and metric requests.
CALL_FRAMES = frozenset((CALL_RESPONSE, CALL_SPACE, CONTROL_RESULT, METRIC_RESULT))

# Kinds of frames from a worker to the server.
HELLO = 65
LOADED = 66
COMPLETED = 67
INITIALIZED = 68
RESULT = 69
SPACE_REQUEST = 70
RELEASED = 71
LOG = 72
FINALIZED = 73
FAILED = 74
RESPONSE_SENT = 75
CALL = 76
CALL_SPACE_REQUEST = 77
CALL_CANCEL = 78
CALL_CREDIT = 79
CONTROL = 80
METRIC_FAMILY = 81
METRIC = 82
METRIC_VALUE = 83
METRICS_RELEASED = 84
RAISED = 85

# Kind of the frame from the server to a zygote that requests a fork. Four descriptors are sent with it: socket, lifeline, output, arena.
ZYGOTE_FORK = 129
# Kinds of frames from a zygote to the server.
ZYGOTE_READY = 193
ZYGOTE_FORKED = 194
ZYGOTE_FORK_FAILED = 195

HEADER = struct.Struct("<IHHII")  # frameBytes, kind, count, id, extra
EXECUTE_HEAD = struct.Struct("<IIII")  # loanCount, spaceCount, inlineOffset, reserved
LENT = struct.Struct("<IIQQ")  # lentId, flags (LENT_SHARED), byteOffset, byteLength
# inputCount, requestedCount, correlationTextBytes, reserved, idBytes, parametersBytes, flags, reserved, correlation, timeoutUs
REQUEST = struct.Struct("<HHHHIIIIQQ")
TENSOR = struct.Struct("<HBBIQQ")  # nameIndex, datatype, rank, block, byteOffset, byteLength
# releasedCount, inlineOffset, messageBytes, reserved, inputNs, inferNs, outputNs
RESULT_HEAD = struct.Struct("<IIIIQQQ")
RESPONSE = struct.Struct("<HHII")  # status (0: outputs, 1: error), outputCount or error code, textBytes, reserved

DIMS = [struct.Struct("<%dq" % rank) for rank in range(33)]
# Header and head in one structure, because each call of `pack` takes time.
_RESULT_START = struct.Struct(HEADER.format + RESULT_HEAD.format[1:])
_RESPONSE_PADDED = struct.Struct(RESPONSE.format + "4x")
_TENSOR_DIMS = [struct.Struct(TENSOR.format + "%dq" % rank) for rank in range(33)]
_ZEROS = [bytes(count) for count in range(16)]

HEADER_BYTES = HEADER.size
EXECUTE_HEAD_BYTES = EXECUTE_HEAD.size
LENT_BYTES = LENT.size
REQUEST_BYTES = REQUEST.size
TENSOR_BYTES = TENSOR.size

INLINE = 0xFFFFFFFF
ALL_OUTPUTS = 0xFFFF
INLINE_ALIGNMENT = 16

LENT_SHARED = 1

RESPONSE_FINAL = 1

# Flag of a SPACE frame. The other bits of `extra` are the id of the SPACE_REQUEST frame.
SPACE_REFUSED = 1

STATUS_RESPONSES = 0
STATUS_BATCH_FAILED = 1
STATUS_BATCH_OUT_OF_MEMORY = 2

ERROR_CODES = (
    "UNKNOWN",
    "INTERNAL",
    "NOT_FOUND",
    "INVALID_ARG",
    "UNAVAILABLE",
    "UNSUPPORTED",
    "ALREADY_EXISTS",
    "CANCELLED",
)


def pad8(size: int) -> int:
    """Returns the number of zero bytes that extend `size` to a multiple of eight."""
    return -size & 7


def frame(kind: int, body: bytes = b"", count: int = 0, frame_id: int = 0, extra: int = 0) -> bytes:
    """Returns a whole frame."""
    return HEADER.pack(HEADER_BYTES + len(body), kind, count, frame_id, extra) + body


class WireRequest:
    """One request of an EXECUTE frame. `inputs` are (name_index, datatype, shape, block, offset, size)."""

    __slots__ = ("inputs", "requested", "request_id", "correlation", "parameters", "flags", "timeout_us")


def decode_execute(view: memoryview) -> tuple[list[Loan], list[Block], list[WireRequest], int]:
    """Decodes an EXECUTE frame to (loans, spaces, requests, inline_offset).

    Loans are (id, flags, offset, size), spaces (id, offset, size).
    """
    request_count = HEADER.unpack_from(view, 0)[2]
    loan_count, space_count, inline_offset, _ = EXECUTE_HEAD.unpack_from(view, HEADER_BYTES)
    at = HEADER_BYTES + EXECUTE_HEAD_BYTES
    loans = []
    spaces = []
    for index in range(loan_count + space_count):
        lent_id, flags, offset, size = LENT.unpack_from(view, at)
        if index < loan_count:
            loans.append((lent_id, flags, offset, size))
        else:
            spaces.append((lent_id, offset, size))
        at += LENT_BYTES
    requests = []
    for _ in range(request_count):
        request = WireRequest()
        at = _decode_request(view, at, request)
        requests.append(request)
    return loans, spaces, requests, inline_offset


def _decode_request(view: memoryview, at: int, request: WireRequest) -> int:
    (
        input_count,
        requested_count,
        correlation_bytes,
        _,
        id_bytes,
        parameters_bytes,
        request.flags,
        _,
        request.correlation,
        request.timeout_us,
    ) = REQUEST.unpack_from(view, at)
    at += REQUEST_BYTES
    request.requested = None
    if requested_count != ALL_OUTPUTS:
        request.requested = struct.unpack_from("<%dH" % requested_count, view, at)
        at += requested_count * 2
    request.request_id = ""
    request.parameters = ""
    if id_bytes or correlation_bytes or parameters_bytes:
        if id_bytes:
            request.request_id = str(view[at : at + id_bytes], "utf-8")
            at += id_bytes
        if correlation_bytes:
            request.correlation = str(view[at : at + correlation_bytes], "utf-8")
            at += correlation_bytes
        if parameters_bytes:
            request.parameters = str(view[at : at + parameters_bytes], "utf-8")
            at += parameters_bytes
    at += -at & 7
    inputs = []
    for _ in range(input_count):
        name_index, datatype, rank, block, offset, size = TENSOR.unpack_from(view, at)
        at += TENSOR_BYTES
        shape = DIMS[rank].unpack_from(view, at)
        at += rank * 8
        inputs.append((name_index, datatype, shape, block, offset, size))
    request.inputs = inputs
    return at


# The record of a response that a model sends separately although it is not decoupled.
LATER = ("later", 0, "")


def encode_result(
    execution_id: int, released: Sequence[int], responses: Sequence[EncodedResponse], durations: tuple[int, int, int]
) -> bytes:
    """Encodes a RESULT frame. `_encode_responses` describes the format of `responses`."""
    return _encode_responses((RESULT, execution_id, STATUS_RESPONSES), released, responses, (0, 0, *durations))


def encode_response(
    execution_id: int, request_index: int, is_final: bool, response: EncodedResponse | None, space_request_id: int
) -> bytes:
    """Encodes a RESPONSE frame with one response, or with only the final flag if `response` is None.

    `space_request_id` is the id of the SPACE_REQUEST frame for the response's memory; 0 for none.
    """
    responses = () if response is None else (response,)
    head = (RESPONSE_SENT, execution_id, RESPONSE_FINAL if is_final else 0)
    return _encode_responses(head, (), responses, (space_request_id, request_index, 0, 0, 0))


def _encode_responses(
    head: tuple[int, int, int], released: Sequence[int], responses: Sequence[EncodedResponse], rest: tuple[int, ...]
) -> bytes:
    """Encodes responses.

    Each is LATER, ("error", code, text) or ("outputs", parameters_text, [(name_index, datatype, shape, block, offset, data)]). `data` is
    the bytes of an inline tensor, otherwise the size of the tensor at `offset` in the block `block`.
    """
    parts = [b""]
    at = _RESULT_START.size
    if released:
        packed = struct.pack("<%dI" % len(released), *released)
        packed += bytes(pad8(len(packed)))
        parts.append(packed)
        at += len(packed)
    inline = []
    inline_at = 0
    for status, first, second in responses:
        if status != "outputs":
            packed = _response_with_text(1 if status == "error" else 2, first, second)
            outputs = ()
        else:
            outputs = second
            packed = (
                _response_with_text(0, len(outputs), first) if first else _RESPONSE_PADDED.pack(0, len(outputs), 0, 0)
            )
        parts.append(packed)
        at += len(packed)
        for name_index, datatype, shape, block, offset, data in outputs:
            rank = len(shape)
            if block == INLINE:
                offset = (inline_at + 15) & -16
                if offset != inline_at:
                    inline.append(_ZEROS[offset - inline_at])
                size = len(data)
                inline.append(data)
                inline_at = offset + size
            else:
                size = data
            parts.append(_TENSOR_DIMS[rank].pack(name_index, datatype, rank, block, offset, size, *shape))
            at += TENSOR_BYTES + rank * 8
    padding = -at & 15
    inline_offset = at + padding
    parts.append(_ZEROS[padding])
    kind, execution_id, extra = head
    parts[0] = _RESULT_START.pack(
        inline_offset + inline_at, kind, len(responses), execution_id, extra, len(released), inline_offset, *rest
    )
    parts += inline
    return b"".join(parts)


def _response_with_text(status: int, number: int, text: str) -> bytes:
    """Returns the head of a response and its text, padded to a multiple of eight bytes."""
    data = text.encode("utf-8", "replace")
    packed = RESPONSE.pack(status, number, len(data), 0) + data
    return packed + bytes(pad8(len(packed)))


def encode_batch_failure(
    execution_id: int,
    released: Sequence[int],
    message: str,
    durations: tuple[int, int, int],
    status: int = STATUS_BATCH_FAILED,
) -> bytes:
    """Encodes a RESULT frame for a batch that failed as a whole."""
    text = message.encode("utf-8", "replace")
    packed = struct.pack("<%dI" % len(released), *released)
    packed += bytes(pad8(len(packed)))
    body = RESULT_HEAD.pack(len(released), 0, len(text), 0, *durations) + packed + text
    return frame(RESULT, body, 0, execution_id, status)


def encode_released(released: Sequence[int]) -> bytes:
    """Encodes a RELEASED frame: the ids of blocks that this process no longer uses."""
    return frame(RELEASED, struct.pack("<%dI" % len(released), *released), 0, 0, len(released))


def encode_space_request(execution_id: int, sizes: list[int], space_request_id: int = 0) -> bytes:
    """Encodes a SPACE_REQUEST frame, which requests output memory of these sizes.

    The memory is for the results of an execution or, with an id, for one separate response.
    """
    return frame(SPACE_REQUEST, struct.pack("<%dQ" % len(sizes), *sizes), len(sizes), execution_id, space_request_id)


def decode_space(view: memoryview) -> tuple[list[Block] | None, str]:
    """Decodes a SPACE frame to (blocks, ""), or to (None, reason)."""
    size, _, count, _, extra = HEADER.unpack_from(view, 0)
    if extra & SPACE_REFUSED:
        return None, str(view[HEADER_BYTES:size], "utf-8")
    blocks = []
    for index in range(count):
        lent_id, _, offset, length = LENT.unpack_from(view, HEADER_BYTES + index * LENT_BYTES)
        blocks.append((lent_id, offset, length))
    return blocks, ""
