"""Encodes arrays and similar values as bodies, for the default content types."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np

from . import content_types, errors

if TYPE_CHECKING:
    from typing import Any


def _plain(value: Any) -> Any:
    """Converts values that JSON does not support."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return json.JSONEncoder().default(value)


def _array_to_json(array_like: Any) -> str:
    return json.dumps(array_like, default=_plain)


def _array_to_npy(array_like: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array_like)
    return buffer.getvalue()


def _array_to_csv(array_like: Any) -> str:
    stream = io.StringIO()
    np.savetxt(stream, array_like, delimiter=",", fmt="%s")
    return stream.getvalue()


_ENCODERS = {
    content_types.NPY: _array_to_npy,
    content_types.CSV: _array_to_csv,
    content_types.JSON: _array_to_json,
}
SUPPORTED_CONTENT_TYPES = set(_ENCODERS)


def encode(array_like: Any, content_type: str) -> str | bytes:
    """Returns the encoded body. Raises UnsupportedFormatError for other content types."""
    encoder = _ENCODERS.get(content_type)
    if encoder is None:
        raise errors.UnsupportedFormatError(content_type)
    return encoder(array_like)
