"""The serializer and deserializer of a model, which the SDK has selected from sample data and pickled.

Objects of these classes are only unpickled here.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from sagemaker.core.deserializers import BaseDeserializer
from sagemaker.core.serializers import CSVSerializer, JSONSerializer

if TYPE_CHECKING:
    from typing import Any


class JSONSerializerWrapper(JSONSerializer):
    """Encodes JSON as bytes."""

    def serialize(self, data: Any) -> bytes:
        """Returns the text as UTF-8."""
        return super().serialize(data).encode("utf-8")


class CSVSerializerWrapper(CSVSerializer):
    """Encodes CSV as bytes."""

    def serialize(self, data: Any) -> bytes:
        """Returns the text as UTF-8."""
        return super().serialize(data).encode("utf-8")


class DeserializerWrapper(BaseDeserializer):
    """Decodes every body as the type of the sample data, regardless of its content type."""

    def __init__(self, deserializer: BaseDeserializer, accept: tuple[str, ...]) -> None:
        self._deserializer = deserializer
        self._accept = accept

    def deserialize(self, stream: IO[bytes], content_type: str | None = None) -> Any:
        """Returns the decoded body."""
        return self._deserializer.deserialize(stream, self._accept[0])

    @property
    def ACCEPT(self) -> str:
        """The supported content type."""
        return self._accept[0]


class SchemaBuilder:
    """The serializers and deserializers of a model, with the sample data from which they were selected."""

    def __init__(self, *arguments: object, **options: object) -> None:
        raise NotImplementedError("A SchemaBuilder is made by SageMaker's SDK, where the model is built.")

    def get_input_sample(self) -> object:
        """Returns the sample input."""
        return self.sample_input
