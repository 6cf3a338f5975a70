"""The frames about a model's custom metrics, specified in WIRE.md.

The server's side is `packages/server/src/backends/python/metric-codec.ts`."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from . import wire

if TYPE_CHECKING:
    from collections.abc import Sequence


_METRIC_HEAD = struct.Struct("<II")  # familyId, reserved
_CELLS = struct.Struct(
    "<QQQ"
)  # byteOffset of its cells and of the cell that a gauge's holders share, number of this holder

REFUSED = 1


def encode_family(request_id: int, family_id: int, kind: int, name: str, description: str) -> bytes:
    """Encodes a METRIC_FAMILY frame."""
    body = json.dumps({"name": name, "description": description}).encode("utf-8")
    return wire.frame(wire.METRIC_FAMILY, body, kind, request_id, family_id)


def encode_metric(
    request_id: int, metric_id: int, family_id: int, labels: dict[str, str], bounds: Sequence[float]
) -> bytes:
    """Encodes a METRIC frame."""
    body = _METRIC_HEAD.pack(family_id, 0) + struct.pack("<%dd" % len(bounds), *bounds)
    return wire.frame(wire.METRIC, body + json.dumps(labels).encode("utf-8"), len(bounds), request_id, metric_id)


def encode_value(request_id: int, metric_id: int) -> bytes:
    """Encodes a METRIC_VALUE frame."""
    return wire.frame(wire.METRIC_VALUE, b"", 0, request_id, metric_id)


def encode_released(family_id: int) -> bytes:
    """Encodes a METRICS_RELEASED frame."""
    return wire.frame(wire.METRICS_RELEASED, b"", 0, 0, family_id)


def decode_result(view: memoryview) -> tuple[int, str | None, bytes]:
    """Decodes a METRIC_RESULT frame to (request id, reason of a rejection, body)."""
    size, _, _, request_id, extra = wire.HEADER.unpack_from(view, 0)
    body = bytes(view[wire.HEADER_BYTES : size])
    return request_id, body.decode("utf-8", "replace") if extra == REFUSED else None, body


def decode_cells(body: bytes) -> tuple[int, int, int, tuple[float, ...]]:
    """Decodes the response to a METRIC frame to (offset of the metric's cells, offset of the shared cell, id of this process, bounds)."""
    cells, shared, holder = _CELLS.unpack_from(body, 0)
    return cells, shared, holder, struct.unpack_from("<%dd" % ((len(body) - _CELLS.size) // 8), body, _CELLS.size)


def decode_value(body: bytes) -> float:
    """Decodes the response to a METRIC_VALUE frame."""
    return struct.unpack("<d", body)[0]
