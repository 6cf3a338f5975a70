"""Datatypes by their number in Triton's configuration, and the encoding of BYTES elements."""

from __future__ import annotations

import struct

import numpy as np

NAMES = (
    "", "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64", "BYTES", "BF16",
)  # fmt: skip
BYTES = 13
BF16 = 14

DTYPES = (
    None,
    np.dtype(np.bool_),
    np.dtype(np.uint8),
    np.dtype(np.uint16),
    np.dtype(np.uint32),
    np.dtype(np.uint64),
    np.dtype(np.int8),
    np.dtype(np.int16),
    np.dtype(np.int32),
    np.dtype(np.int64),
    np.dtype(np.float16),
    np.dtype(np.float32),
    np.dtype(np.float64),
    np.dtype(np.object_),
    None,
)

NUMBERS = {dtype: number for number, dtype in enumerate(DTYPES) if dtype is not None}
_BY_KIND = {
    (dtype.kind, dtype.itemsize): number for number, dtype in enumerate(DTYPES) if dtype is not None and number != BYTES
}

_LENGTH = struct.Struct("<I")


def number_of_dtype(dtype: np.dtype) -> int:
    """Returns the datatype number of a numpy dtype; 0 if there is none."""
    number = NUMBERS.get(dtype)
    if number is not None:
        return number
    # Handles aliases (longlong), foreign byte order and fixed-width strings.
    if dtype.kind in "SUO":
        return BYTES
    return _BY_KIND.get((dtype.kind, dtype.itemsize), 0)


def element_bytes(value: object) -> bytes | bytearray:
    """Returns the bytes of one BYTES element. As in Triton, bytes are returned unchanged, and other values are converted to text."""
    if isinstance(value, (bytes, bytearray)):
        return value
    if isinstance(value, str):
        return value.encode("utf-8")
    return str(value).encode("utf-8")


def serialize_elements(array: np.ndarray) -> bytes:
    """Encodes an array of bytes or text, in row-major order, as a uint32 length and the bytes of each element."""
    pack = _LENGTH.pack
    parts = []
    for value in array.ravel(order="C").tolist() if array.dtype.kind in "SU" else array.ravel(order="C"):
        data = element_bytes(value)
        parts.append(pack(len(data)))
        parts.append(data)
    return b"".join(parts)


def deserialize_elements(view: memoryview) -> list[bytes]:
    """Decodes uint32 lengths and bytes to a list of bytes objects. Raises ValueError if a length exceeds the data."""
    elements = []
    at = 0
    end = len(view)
    unpack = _LENGTH.unpack_from
    while at < end:
        if at + 4 > end:
            raise ValueError("incomplete length of a BYTES element")
        (size,) = unpack(view, at)
        at += 4
        if at + size > end:
            raise ValueError("incomplete BYTES element")
        elements.append(bytes(view[at : at + size]))
        at += size
    return elements
