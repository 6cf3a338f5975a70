"""Concatenates the data of several requests for a predict_fn that processes rows independently, and splits the results."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any


def joined(batch: list[Any]) -> Any | None:
    """Concatenates arrays or tensors with equal row shapes; returns None for other values."""
    first = batch[0]
    kind = _library_of(first)
    if kind is None or any(type(one) is not type(first) for one in batch):
        return None
    if any(one.ndim == 0 or one.dtype != first.dtype or one.shape[1:] != first.shape[1:] for one in batch):
        return None
    return np.concatenate(batch) if kind == "numpy" else sys.modules["torch"].cat(batch)


def split(result: Any, rows: list[int]) -> list[Any] | None:
    """Splits a prediction into the rows of each request; returns None if it does not have one result for each row."""
    if _library_of(result) is None and not isinstance(result, list):
        return None
    if getattr(result, "ndim", 1) == 0 or len(result) != sum(rows):
        return None
    parts = []
    at = 0
    for count in rows:
        parts.append(result[at : at + count])
        at += count
    return parts


def _library_of(value: Any) -> str | None:
    if type(value) is np.ndarray:
        return "numpy"
    torch = sys.modules.get("torch")
    return "torch" if torch is not None and isinstance(value, torch.Tensor) else None
