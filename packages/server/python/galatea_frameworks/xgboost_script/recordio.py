"""Parses SageMaker's record format: RecordIO frames that each contain a protobuf `Record`."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAGIC = 0xCED7230A
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
# Datatypes of the tensor fields in a Value message, by field number.
_TENSORS = {2: np.dtype("<f4"), 3: np.dtype("<f8"), 7: np.dtype("<i4")}
_VARINT_BYTES_MAX = 10
_FEATURES, _LABEL = 1, 2


def records(data: bytes) -> Iterator[memoryview]:
    """Yields the content of each frame. Raises ValueError for invalid bytes."""
    view = memoryview(data)
    at = 0
    while at + 8 <= len(view):
        magic, length = struct.unpack_from("<II", view, at)
        if magic != _MAGIC:
            raise ValueError("Invalid RecordIO magic at offset %d" % at)
        at += 8
        end = at + (length + 3) // 4 * 4
        if end > len(view):
            raise ValueError("Truncated record at offset %d" % at)
        yield view[at : at + length]
        at = end


def features_and_label(record: memoryview) -> tuple[np.ndarray | scipy.sparse.csr_matrix, np.ndarray | None] | None:
    """Returns the feature named `values` of a record as a row, and the record's label; None if there is no such feature.

    Raises ValueError.
    """
    found = {_FEATURES: None, _LABEL: None}
    for number, _, value in _fields(record):
        if number in found and isinstance(value, memoryview):
            entry = {key: content for key, _, content in _fields(value)}
            if bytes(entry.get(1, b"")) == b"values" and isinstance(entry.get(2), memoryview):
                found[number] = _tensor(entry[2])
    if found[_FEATURES] is None:
        return None
    values, keys, shape = found[_FEATURES]
    label = None if found[_LABEL] is None else found[_LABEL][0]
    if not keys:
        return values.reshape(1, -1), label
    width = shape[0] if shape else max(keys) + 1
    if min(keys) < 0 or max(keys) >= width or len(keys) != len(values):
        raise ValueError("a record has values of columns that it has not")
    return scipy.sparse.csr_matrix((values, keys, [0, len(keys)]), shape=(1, width)), label


def _tensor(value: memoryview) -> tuple[np.ndarray, list[int], list[int]] | None:
    """Returns the values, keys and shape of the numeric tensor in a Value message; None if there is no numeric tensor."""
    for number, _, content in _fields(value):
        dtype = _TENSORS.get(number)
        if dtype is not None and isinstance(content, memoryview):
            return _parts(content, dtype)
    return None


def _parts(tensor: memoryview, dtype: np.dtype) -> tuple[np.ndarray, list[int], list[int]]:
    values, keys, shape = [], [], []
    for number, wire, content in _fields(tensor):
        if number == 1:
            values.append(_numbers(wire, content, dtype))
        elif number in (2, 3):
            (keys if number == 2 else shape).extend(_integers(content))
    return np.concatenate(values) if values else np.empty(0, dtype), keys, shape


def _numbers(wire: int, content: int | memoryview, dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "i":
        return np.array(_integers(content), np.int64).astype(np.int32)
    if wire == _VARINT or len(content) % dtype.itemsize != 0:
        raise ValueError("a tensor's values are cut short")
    return np.frombuffer(content, dtype)


def _integers(content: int | memoryview) -> list[int]:
    """Returns the integers of a field, which may be packed."""
    if isinstance(content, int):
        return [_signed(content)]
    found = []
    at = 0
    while at < len(content):
        value, at = _varint(content, at)
        found.append(_signed(value))
    return found


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _fields(message: memoryview) -> Iterator[tuple[int, int, int | memoryview]]:
    """Yields the number, wire type and content (an integer or bytes) of each field."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            content, at = _varint(message, at)
        elif wire in (_FIXED64, _FIXED32, _BYTES):
            length = 8 if wire == _FIXED64 else 4
            if wire == _BYTES:
                length, at = _varint(message, at)
            if at + length > len(message):
                raise ValueError("a field is cut short")
            content, at = message[at : at + length], at + length
        else:
            raise ValueError("a record is not a protobuf message")
        yield tag >> 3, wire, content


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for place in range(_VARINT_BYTES_MAX):
        if at + place >= len(message):
            break
        byte = message[at + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value & (1 << 64) - 1, at + place + 1
    raise ValueError("a record is not a protobuf message")
