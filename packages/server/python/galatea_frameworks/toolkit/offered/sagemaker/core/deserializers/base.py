"""Deserializers of request bodies.

Pickles of the SDK contain objects of these classes, so the names of classes and attributes must be the SDK's.
"""

from __future__ import annotations

import abc
import csv
import io
import json
from typing import IO, TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BaseDeserializer",
    "BytesDeserializer",
    "CSVDeserializer",
    "JSONDeserializer",
    "JSONLinesDeserializer",
    "NumpyDeserializer",
    "PandasDeserializer",
    "SimpleBaseDeserializer",
    "StreamDeserializer",
    "StringDeserializer",
    "TorchTensorDeserializer",
]


class BaseDeserializer(abc.ABC):
    """Base class of deserializers, including those that a script defines."""

    @abc.abstractmethod
    def deserialize(self, stream: IO[bytes], content_type: str) -> Any:
        """Returns the decoded body."""

    @property
    @abc.abstractmethod
    def ACCEPT(self) -> tuple[str, ...]:
        """The supported content types."""


class SimpleBaseDeserializer(BaseDeserializer):
    """A deserializer whose content types are passed to its constructor."""

    _accept = "*/*"

    def __init__(self, accept: str | tuple[str, ...] | None = None) -> None:
        self.accept = self._accept if accept is None else accept

    @property
    def ACCEPT(self) -> tuple[str, ...]:
        """The supported content types."""
        return (self.accept,) if isinstance(self.accept, str) else self.accept


class StringDeserializer(SimpleBaseDeserializer):
    """Decodes a body to text."""

    _accept = "application/json"

    def __init__(self, encoding: str = "UTF-8", accept: str | tuple[str, ...] | None = None) -> None:
        super().__init__(accept)
        self.encoding = encoding

    def deserialize(self, stream: IO[bytes], content_type: str) -> str:
        """Returns the text."""
        return stream.read().decode(self.encoding)


class BytesDeserializer(SimpleBaseDeserializer):
    """Returns the bytes of a body."""

    def deserialize(self, stream: IO[bytes], content_type: str) -> bytes:
        """Returns the bytes."""
        return stream.read()


class CSVDeserializer(SimpleBaseDeserializer):
    """Decodes CSV to lists of text."""

    _accept = "text/csv"

    def __init__(self, encoding: str = "utf-8", accept: str | tuple[str, ...] | None = None) -> None:
        super().__init__(accept)
        self.encoding = encoding

    def deserialize(self, stream: IO[bytes], content_type: str) -> list[list[str]]:
        """Returns a list of texts for each line."""
        return list(csv.reader(stream.read().decode(self.encoding).splitlines()))


class StreamDeserializer(SimpleBaseDeserializer):
    """Returns the stream of a body unread."""

    def deserialize(self, stream: IO[bytes], content_type: str) -> tuple[IO[bytes], str]:
        """Returns the stream and its content type."""
        return stream, content_type


class NumpyDeserializer(SimpleBaseDeserializer):
    """Decodes numpy files, CSV and JSON to arrays. Pickled Python objects are rejected, because a request must not run code."""

    _accept = "application/x-npy"

    def __init__(
        self, dtype: Any = None, accept: str | tuple[str, ...] | None = None, allow_pickle: bool = False
    ) -> None:
        super().__init__(accept)
        self.dtype = dtype
        self.allow_pickle = allow_pickle

    def deserialize(self, stream: IO[bytes], content_type: str) -> Any:
        """Returns the array."""
        data = stream.read()
        if content_type == "text/csv":
            return np.genfromtxt(io.StringIO(data.decode("utf-8")), delimiter=",", dtype=self.dtype)
        if content_type == "application/json":
            return np.array(json.loads(data), dtype=self.dtype)
        if content_type in ("application/x-npy", "application/x-npz"):
            return np.load(io.BytesIO(data), allow_pickle=False)
        raise ValueError("%s cannot read content type %s." % (type(self).__name__, content_type))


class JSONDeserializer(SimpleBaseDeserializer):
    """Decodes JSON."""

    _accept = "application/json"

    def deserialize(self, stream: IO[bytes], content_type: str) -> Any:
        """Returns the value of the JSON text."""
        return json.loads(stream.read())


class JSONLinesDeserializer(SimpleBaseDeserializer):
    """Decodes JSON lines."""

    _accept = "application/jsonlines"

    def deserialize(self, stream: IO[bytes], content_type: str) -> list[Any]:
        """Returns the value of each line."""
        return [json.loads(line) for line in stream.read().decode("utf-8").rstrip().split("\n")]


class PandasDeserializer(SimpleBaseDeserializer):
    """Decodes CSV and JSON to data frames."""

    _accept = ("text/csv", "application/json")

    def deserialize(self, stream: IO[bytes], content_type: str) -> Any:
        """Returns the data frame."""
        import pandas

        if content_type == "text/csv":
            return pandas.read_csv(stream)
        if content_type == "application/json":
            return pandas.read_json(stream)
        raise ValueError("%s cannot read content type %s." % (type(self).__name__, content_type))


class TorchTensorDeserializer(SimpleBaseDeserializer):
    """Decodes numpy files to PyTorch tensors."""

    _accept = "tensor/pt"

    def deserialize(self, stream: IO[bytes], content_type: str = "tensor/pt") -> Any:
        """Returns the tensor."""
        import torch

        return torch.from_numpy(np.load(io.BytesIO(stream.read()), allow_pickle=False))
