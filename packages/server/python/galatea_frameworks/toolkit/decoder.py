"""Decodes bodies to arrays, for the default content types."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING

import numpy as np

from . import content_types, errors

if TYPE_CHECKING:
    from typing import Any


def _json_to_numpy(text: str, dtype: Any = None) -> np.ndarray:
    return np.array(json.loads(text), dtype=dtype)


def _csv_to_numpy(text: str, dtype: Any = None) -> np.ndarray:
    return np.genfromtxt(io.StringIO(text), dtype=dtype, delimiter=",")


def _npy_to_numpy(data: bytes) -> np.ndarray:
    """Loads an array. Pickled Python objects are rejected, because they would let a client run code in the model's process."""
    return np.load(io.BytesIO(data), allow_pickle=False)


def _npz_to_sparse(data: bytes) -> Any:
    import scipy.sparse

    return scipy.sparse.load_npz(io.BytesIO(data))


_DECODERS = {
    content_types.NPY: _npy_to_numpy,
    content_types.CSV: _csv_to_numpy,
    content_types.JSON: _json_to_numpy,
    content_types.NPZ: _npz_to_sparse,
}


def decode(obj: Any, content_type: str | None) -> Any:
    """Returns the array or sparse matrix in a body. Raises UnsupportedFormatError for other content types."""
    decoder = _DECODERS.get(content_type)
    if decoder is None:
        raise errors.UnsupportedFormatError(content_type)
    return decoder(obj)
