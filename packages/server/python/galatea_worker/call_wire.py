"""The frames for calling and loading other models, specified in WIRE.md.

Imported only for models that call or load others. The server's side is `packages/server/src/backends/python/call-codec.ts`. Both sides are
tested against the same bytes in `conformance/vectors`.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from . import wire

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


MESSAGE_HEAD = struct.Struct("<IIII")  # textBytes, inlineOffset, loanCount, reserved

CONTROL_HEAD = struct.Struct("<II")  # textBytes, reserved

# Flag of a CALL frame.
STREAMED = 1
# Flag of a CALL_RESPONSE frame.
LAST = 1

LOAD = 1
UNLOAD = 2
READY = 3


def encode_message(kind: int, call_id: int, extra: int, text: bytes, tensors: Sequence[wire.Output]) -> bytes:
    """Encodes a frame that contains a JSON object and tensors.

    As in a RESULT frame, tensors are [(name_index, datatype, shape, block, offset, data)].
    """
    at = wire.HEADER_BYTES + MESSAGE_HEAD.size + len(text)
    padding = wire.pad8(at)
    parts = [text, bytes(padding)]
    at += padding
    inline = []
    inline_at = 0
    for name_index, datatype, shape, block, offset, data in tensors:
        size = data
        if block == wire.INLINE:
            padding = -inline_at & 15
            inline.append(bytes(padding))
            offset = inline_at + padding
            size = len(data)
            inline.append(data)
            inline_at = offset + size
        parts.append(
            wire.TENSOR.pack(name_index, datatype, len(shape), block, offset, size) + wire.DIMS[len(shape)].pack(*shape)
        )
        at += wire.TENSOR_BYTES + 8 * len(shape)
    padding = -at & 15
    inline_offset = at + padding
    head = wire.HEADER.pack(inline_offset + inline_at, kind, len(tensors), call_id, extra)
    return b"".join((head, MESSAGE_HEAD.pack(len(text), inline_offset, 0, 0), *parts, bytes(padding), *inline))


def decode_loans(view: memoryview) -> list[wire.Loan]:
    """Decodes the lent blocks in a CALL_RESPONSE frame: [(lent_id, flags, offset, size)]."""
    loan_count = MESSAGE_HEAD.unpack_from(view, wire.HEADER_BYTES)[2]
    at = wire.HEADER_BYTES + MESSAGE_HEAD.size
    return [wire.LENT.unpack_from(view, at + index * wire.LENT_BYTES) for index in range(loan_count)]


def decode_message(view: memoryview) -> tuple[dict[str, Any], list[wire.Loan], list[wire.Input], int]:
    """Decodes a CALL_RESPONSE frame to (object, loans, tensors, inline_offset).

    Tensors are (name_index, datatype, shape, block, offset, size).
    """
    count = wire.HEADER.unpack_from(view, 0)[2]
    text_bytes, inline_offset, _, _ = MESSAGE_HEAD.unpack_from(view, wire.HEADER_BYTES)
    loans = decode_loans(view)
    at = wire.HEADER_BYTES + MESSAGE_HEAD.size + len(loans) * wire.LENT_BYTES
    text = json.loads(bytes(view[at : at + text_bytes]))
    at += text_bytes
    at += -at & 7
    tensors = []
    for _ in range(count):
        name_index, datatype, rank, block, offset, size = wire.TENSOR.unpack_from(view, at)
        at += wire.TENSOR_BYTES
        shape = wire.DIMS[rank].unpack_from(view, at)
        at += 8 * rank
        tensors.append((name_index, datatype, shape, block, offset, size))
    return text, loans, tensors, inline_offset


def encode_space_request(call_id: int, sizes: list[int]) -> bytes:
    """Encodes a CALL_SPACE_REQUEST frame, which requests memory for the inputs of a call."""
    return wire.frame(wire.CALL_SPACE_REQUEST, struct.pack("<%dQ" % len(sizes), *sizes), len(sizes), call_id)


def encode_cancel(call_id: int) -> bytes:
    """Encodes a CALL_CANCEL frame, which ends a call. Its responses are not needed any more."""
    return wire.frame(wire.CALL_CANCEL, b"", 0, call_id)


def encode_credit(call_id: int, count: int) -> bytes:
    """Encodes a CALL_CREDIT frame, which acknowledges this many responses."""
    return wire.frame(wire.CALL_CREDIT, b"", 0, call_id, count)


def encode_control(control_id: int, verb: int, text: bytes, files: list[bytes]) -> bytes:
    """Encodes a CONTROL frame: a JSON object, then the contents of the files whose lengths are in the object."""
    head = CONTROL_HEAD.pack(len(text), 0)
    return wire.frame(wire.CONTROL, b"".join((head, text, *files)), len(files), control_id, verb)


def decode_control_result(view: memoryview) -> dict[str, Any]:
    """Decodes a CONTROL_RESULT frame to its JSON object."""
    return json.loads(bytes(view[wire.HEADER_BYTES :]))
