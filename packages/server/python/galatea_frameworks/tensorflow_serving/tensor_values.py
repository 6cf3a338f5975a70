"""Converts JSON values to tensors with the datatypes of a signature."""

from __future__ import annotations

import base64
import binascii
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
from tensorflow.core.framework import types_pb2
from tensorflow.python.framework import dtypes

from .errors import UNIMPLEMENTED, ServingError
from .json_text import bytes_of, shown, type_name

if TYPE_CHECKING:
    from typing import Any

_FLOATS = {types_pb2.DT_FLOAT: np.float32, types_pb2.DT_DOUBLE: np.float64}
_INTEGERS = {
    types_pb2.DT_INT8: np.int8, types_pb2.DT_INT16: np.int16, types_pb2.DT_INT32: np.int32, types_pb2.DT_INT64: np.int64,
    types_pb2.DT_UINT8: np.uint8, types_pb2.DT_UINT32: np.uint32, types_pb2.DT_UINT64: np.uint64,
}  # fmt: skip
_BASE64 = "b64"
# Maximum number of dimensions in numpy. Inputs of models have fewer.
_DIMENSIONS_MAX = 32


def datatype_name(datatype: int) -> str:
    """Returns the name of a datatype in TensorFlow's error texts, such as float or int32."""
    try:
        return dtypes.as_dtype(datatype).name.replace("float32", "float").replace("float64", "double")
    except TypeError:
        return "unknown"


def is_base64(value: Any) -> bool:
    """Returns whether a JSON value is an object with base64 text (`{"b64": ...}`)."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get(_BASE64), str)


def decoded(value: dict[str, str]) -> bytes:
    """Returns the bytes of a base64 object (`{"b64": ...}`)."""
    text = value[_BASE64]
    try:
        # Padding is optional, and the alphabet for URLs is accepted too.
        data = text.translate(_URL_ALPHABET).rstrip("=").encode("ascii")
        return base64.b64decode(data + b"=" * (-len(data) % 4), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ServingError("Unable to base64 decode") from None


_URL_ALPHABET = str.maketrans("-_", "+/")


def to_tensor(value: Any, datatype: int) -> np.ndarray:
    """Converts nested lists, or a single value, to a tensor. Raises ServingError."""
    leaves, shape = _leaves(value)
    array = None if leaves is None else _array(leaves, datatype)
    if array is None:
        _explain(value, _shape_by_first(value), 0, datatype)
        raise ServingError("JSON Value: %s cannot be read as %s" % (shown(value), datatype_name(datatype)))
    if len(shape) > _DIMENSIONS_MAX:
        raise ServingError("a tensor has %d dimensions at most, got %d" % (_DIMENSIONS_MAX, len(shape)))
    return array.reshape(shape)


def _leaves(value: Any) -> tuple[list[Any] | None, list[int]]:
    """Returns all elements and the shape; None if lists of one level differ in length or depth."""
    shape = []
    flat = [value]
    while flat and isinstance(flat[0], list):
        if set(map(type, flat)) != {list}:
            return None, shape
        lengths = set(map(len, flat))
        if len(lengths) > 1:
            return None, shape
        shape.append(lengths.pop())
        flat = list(chain.from_iterable(flat))
    return flat, shape


def _array(leaves: list[Any], datatype: int) -> np.ndarray | None:
    """Returns the elements as a one-dimensional array; None if an element has another type."""
    types = set(map(type, leaves))
    try:
        if datatype in _FLOATS:
            return _floats(leaves, _FLOATS[datatype]) if types <= {int, float} else None
        if datatype in _INTEGERS:
            return np.array(leaves, dtype=_INTEGERS[datatype]) if types <= {int} else None
    except OverflowError:
        return None
    if datatype == types_pb2.DT_BOOL:
        return np.array(leaves, dtype=np.bool_) if types <= {bool} else None
    if datatype == types_pb2.DT_STRING:
        return _strings(leaves) if types <= {str, dict} else None
    return None


def _floats(leaves: list[Any], kind: type) -> np.ndarray:
    with np.errstate(over="ignore"):
        return np.array(leaves, dtype=np.float64).astype(kind, copy=False)


def _strings(leaves: list[Any]) -> np.ndarray | None:
    array = np.empty(len(leaves), dtype=np.object_)
    for place, one in enumerate(leaves):
        if isinstance(one, str):
            array[place] = bytes_of(one)
        elif is_base64(one):
            array[place] = decoded(one)
        else:
            return None
    return array


def _shape_by_first(value: Any) -> list[int]:
    """Returns the shape, derived from the first element of each list."""
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        if not value:
            break
        value = value[0]
    return shape


def _explain(value: Any, shape: list[int], level: int, datatype: int) -> None:
    """Raises the error for the first invalid element, with TensorFlow Serving's text."""
    if not isinstance(value, list):
        if level != len(shape):
            raise ServingError(
                "JSON Value: %s found at incorrect level: %d in the JSON DOM. Expected at level: %d"
                % (shown(value), level + 1, len(shape))
            )
        _explain_element(value, datatype)
        return
    if level >= len(shape):
        raise ServingError("Encountered list at unexpected level: %d expected < %d" % (level, len(shape)))
    if len(value) != shape[level]:
        raise ServingError(
            "Encountered list at unexpected size: %d at level: %d expected size: %d" % (len(value), level, shape[level])
        )
    for one in value:
        _explain(one, shape, level + 1, datatype)


def _explain_element(value: Any, datatype: int) -> None:
    if datatype == types_pb2.DT_STRING and isinstance(value, dict):
        if not is_base64(value):
            raise ServingError("JSON Value: %s not formatted correctly for base64 data" % shown(value))
        decoded(value)
        return
    if not isinstance(value, dict) and not _is_read(datatype):
        raise ServingError(
            "Conversion of JSON Value: %s to type: %s" % (shown(value), datatype_name(datatype)), UNIMPLEMENTED
        )
    if isinstance(value, dict) or _array([value], datatype) is None:
        raise ServingError(
            "JSON Value: %s Type: %s is not of expected type: %s"
            % (shown(value), type_name(value), datatype_name(datatype))
        )


def _is_read(datatype: int) -> bool:
    return datatype in _FLOATS or datatype in _INTEGERS or datatype in (types_pb2.DT_BOOL, types_pb2.DT_STRING)
