"""Converts bodies to arrays, and arrays to bodies.

All columns of a CSV body get one type; SageMaker's inference toolkit determines a type for each column.
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import numpy as np
from galatea_frameworks.toolkit import content_types, decoder, encoder

from .errors import ClientError, UnsupportedFormatError
from .unavailable import refused

if TYPE_CHECKING:
    from typing import Any


def array_to_npy(array_like: Any) -> bytes:
    """Returns the array as a numpy file."""
    return encoder.encode(array_like, content_types.NPY)


def npy_to_numpy(npy_array: bytes) -> np.ndarray:
    """Returns the array in a numpy file. Pickled Python objects are rejected, because a request must not run code."""
    return decoder.decode(npy_array, content_types.NPY)


def array_to_json(array_like: Any) -> str:
    """Returns the array as JSON."""
    return encoder.encode(array_like, content_types.JSON)


def json_to_numpy(string_like: str, dtype: Any = None) -> np.ndarray:
    """Returns the array in a JSON text."""
    return np.array(json.loads(string_like), dtype=dtype)


def csv_to_numpy(string_like: str, dtype: Any = None) -> np.ndarray:
    """Returns the rows as float64, or as `dtype`. Without `dtype`, the result is an array of texts if a field is not a number."""
    try:
        rows = list(csv.reader(io.StringIO(string_like), strict=True))
        array = np.array(rows).squeeze()
    except (ValueError, csv.Error) as error:
        raise ClientError("Error while decoding csv: %s" % error) from error
    try:
        return array.astype(dtype)
    except ValueError as error:
        if dtype is None:
            return array
        raise ClientError("Error while writing numpy array: %s. dtype is: %s" % (error, dtype)) from error


def array_to_csv(array_like: Any) -> str:
    """Returns a text with a line for each row."""
    array = np.array(array_like)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    stream = io.StringIO()
    try:
        csv.writer(stream, lineterminator="\n", strict=True).writerows(array)
    except csv.Error as error:
        raise ClientError("Error while encoding csv: %s" % error) from error
    return stream.getvalue()


array_to_recordio_protobuf = refused("encoders.array_to_recordio_protobuf")

_DECODERS = {content_types.NPY: npy_to_numpy, content_types.CSV: csv_to_numpy, content_types.JSON: json_to_numpy}
_ENCODERS = {content_types.NPY: array_to_npy, content_types.CSV: array_to_csv, content_types.JSON: array_to_json}


def decode(obj: Any, content_type: str) -> np.ndarray:
    """Returns the array in a body. Raises UnsupportedFormatError for other content types."""
    reader = _DECODERS.get(content_type)
    if reader is None:
        raise UnsupportedFormatError(content_type)
    return reader(obj)


def encode(array_like: Any, content_type: str) -> str | bytes:
    """Returns the body of an array. Raises UnsupportedFormatError for other content types."""
    writer = _ENCODERS.get(content_type)
    if writer is None:
        raise UnsupportedFormatError(content_type)
    return writer(array_like)
