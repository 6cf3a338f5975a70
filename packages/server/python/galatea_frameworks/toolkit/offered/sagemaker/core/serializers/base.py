"""Serializers of predictions.

Pickles of the SDK contain objects of these classes, so the names of classes and attributes must be the SDK's.
"""

from __future__ import annotations

import abc
import csv
import io
import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BaseSerializer",
    "CSVSerializer",
    "DataSerializer",
    "IdentitySerializer",
    "JSONLinesSerializer",
    "JSONSerializer",
    "LibSVMSerializer",
    "NumpySerializer",
    "SimpleBaseSerializer",
    "SparseMatrixSerializer",
    "StringSerializer",
    "TorchTensorSerializer",
]


class BaseSerializer(abc.ABC):
    """Base class of serializers, including those that a script defines."""

    @abc.abstractmethod
    def serialize(self, data: Any) -> Any:
        """Returns the encoded body."""

    @property
    @abc.abstractmethod
    def CONTENT_TYPE(self) -> str:
        """The content type of the body."""


class SimpleBaseSerializer(BaseSerializer):
    """A serializer whose content type is passed to its constructor."""

    _content_type = "application/json"

    def __init__(self, content_type: str | None = None) -> None:
        self.content_type = self._content_type if content_type is None else content_type

    @property
    def CONTENT_TYPE(self) -> str:
        """The body's content type."""
        return self.content_type


def _unreadable(data: Any, form: str) -> ValueError:
    return ValueError("Cannot write an object of type %s as %s." % (type(data), form))


class CSVSerializer(SimpleBaseSerializer):
    """Encodes data frames, arrays, lists and files as CSV."""

    _content_type = "text/csv"

    def serialize(self, data: Any) -> str:
        """Returns a line for each row."""
        if hasattr(data, "read"):
            return data.read()
        if hasattr(data, "to_csv"):
            return data.to_csv(header=False, index=False)
        has_rows = hasattr(data, "__setitem__") and len(data) > 0 and hasattr(data[0], "__getitem__")
        return "\n".join(map(self._row, data)) if has_rows else self._row(data)

    def _row(self, data: Any) -> str:
        if isinstance(data, str):
            return data
        if isinstance(data, np.ndarray):
            data = data.flatten()
        if not hasattr(data, "__len__"):
            raise _unreadable(data, "CSV")
        if len(data) == 0:
            raise ValueError("Cannot write an empty array as CSV.")
        line = io.StringIO()
        csv.writer(line).writerow(data)
        return line.getvalue().rstrip("\r\n")


class NumpySerializer(SimpleBaseSerializer):
    """Encodes arrays, lists and numbers as numpy files."""

    _content_type = "application/x-npy"

    def __init__(self, dtype: Any = None, content_type: str | None = None) -> None:
        super().__init__(content_type)
        self.dtype = dtype

    def serialize(self, data: Any) -> bytes:
        """Returns the content of the file."""
        if hasattr(data, "read"):
            return data.read()
        array = np.array(data, self.dtype) if isinstance(data, list) else np.asarray(data)
        if array.size == 0:
            raise ValueError("Cannot serialize empty array.")
        file = io.BytesIO()
        np.save(file, array)
        return file.getvalue()


class JSONSerializer(SimpleBaseSerializer):
    """Encodes JSON. Arrays, including those in a dictionary, become lists."""

    def serialize(self, data: Any) -> str:
        """Returns the text."""
        if hasattr(data, "read"):
            return data.read()
        if isinstance(data, dict):
            data = {key: _listed(value) for key, value in data.items()}
        return json.dumps(_listed(data))


def _listed(data: Any) -> Any:
    return data.tolist() if isinstance(data, np.ndarray) else data


class JSONLinesSerializer(SimpleBaseSerializer):
    """Encodes each element as a line of JSON."""

    _content_type = "application/jsonlines"

    def serialize(self, data: Any) -> str:
        """Returns the text."""
        if hasattr(data, "read"):
            return data.read()
        return data if isinstance(data, str) else "\n".join(json.dumps(each) for each in data)


class IdentitySerializer(SimpleBaseSerializer):
    """Returns data unchanged."""

    _content_type = "application/octet-stream"

    def serialize(self, data: Any) -> Any:
        """Returns the data unchanged."""
        return data


class SparseMatrixSerializer(SimpleBaseSerializer):
    """Encodes sparse matrices of SciPy."""

    _content_type = "application/x-npz"

    def serialize(self, data: Any) -> bytes:
        """Returns the content of the file."""
        import scipy.sparse

        file = io.BytesIO()
        scipy.sparse.save_npz(file, data)
        return file.getvalue()


class LibSVMSerializer(SimpleBaseSerializer):
    """Returns text in LibSVM's format unchanged."""

    _content_type = "text/libsvm"

    def serialize(self, data: Any) -> str:
        """Returns the text."""
        if isinstance(data, str):
            return data
        if hasattr(data, "read"):
            return data.read()
        raise _unreadable(data, "LibSVM")


class DataSerializer(SimpleBaseSerializer):
    """Returns bytes unchanged, the bytes in a dictionary's `data`, or the content of the file that a text names."""

    _content_type = "file-path/raw-bytes"

    def serialize(self, data: Any) -> bytes:
        """Returns the bytes."""
        if isinstance(data, dict) and "data" in data:
            return self.serialize(data["data"])
        if isinstance(data, bytes):
            return data
        if isinstance(data, str):
            with open(data, "rb") as file:
                return file.read()
        raise _unreadable(data, "bytes")


class StringSerializer(SimpleBaseSerializer):
    """Encodes text as UTF-8."""

    _content_type = "text/plain"

    def serialize(self, data: Any) -> bytes:
        """Returns the bytes."""
        if isinstance(data, str):
            return data.encode("utf-8")
        raise _unreadable(data, "text")


class TorchTensorSerializer(SimpleBaseSerializer):
    """Encodes a PyTorch tensor as a numpy file."""

    _content_type = "tensor/pt"

    def serialize(self, data: Any) -> bytes:
        """Returns the content of the file."""
        if not hasattr(data, "detach"):
            raise _unreadable(data, "a tensor")
        return NumpySerializer().serialize(data.detach().numpy())
