"""The base class for a user's own conversion of bodies."""

from __future__ import annotations

import abc
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

CONTENT_TYPE = "application/custom"
ACCEPT_TYPE = "application/custom"


class CustomPayloadTranslator(abc.ABC):
    """Converts between bodies and objects. Users define the conversions in a subclass."""

    def __init__(self, content_type: str = CONTENT_TYPE, accept_type: str = ACCEPT_TYPE) -> None:
        self._content_type = content_type
        self._accept_type = accept_type

    @abc.abstractmethod
    def serialize_payload_to_bytes(self, payload: Any) -> bytes:
        """Returns the body for an object."""

    @abc.abstractmethod
    def deserialize_payload_from_stream(self, stream: IO[bytes]) -> Any:
        """Returns the object that a body encodes."""

    def serialize(self, payload: Any, content_type: str = CONTENT_TYPE) -> bytes:
        """Returns the body for an object. The content type is ignored."""
        return self.serialize_payload_to_bytes(payload)

    def deserialize(self, stream: IO[bytes], content_type: str = CONTENT_TYPE) -> Any:
        """Returns the object that a body encodes. The content type is ignored."""
        return self.deserialize_payload_from_stream(stream)

    @property
    def CONTENT_TYPE(self) -> str:
        """The content type of requests."""
        return self._content_type

    @property
    def ACCEPT(self) -> str:
        """The content type of responses."""
        return self._accept_type
