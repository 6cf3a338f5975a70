"""Converts tensors of requests to arrays for TensorFlow, and its results to tensors of responses. Copies bytes only when necessary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils

from galatea_frameworks.batched_model import InvalidRequest, split_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from triton_python_backend_utils import Tensor


def to_value(tensor: Tensor | None, name: str) -> np.ndarray:
    """Returns an array over the request's bytes, which TensorFlow reads without a copy; for strings, an array of bytes objects."""
    if tensor is None:
        raise InvalidRequest("input '%s' is missing: a graph is fed all of its inputs" % name)
    return tensor.as_numpy()


def joined(column: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates the values of one input of several requests."""
    return np.concatenate(column, 0)


def split(name: str, value: np.ndarray, rows: list[int] | None) -> Iterable[Tensor]:
    """Yields the tensor of an output for each request. Raises InvalidRequest."""
    whole = np.asarray(value)
    if rows is not None and whole.ndim == 0:
        raise InvalidRequest(
            "output '%s' is a scalar, and has no rows for a batch" % name, pb_utils.TritonError.INTERNAL
        )
    return [pb_utils.Tensor(name, one) for one in split_rows(name, whole, rows)]
