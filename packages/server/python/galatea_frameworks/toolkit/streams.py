"""Responses that a script produces in chunks: its functions may return an iterator, or one and its content type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answer import Answer, body_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def is_stream(result: Any) -> bool:
    """Returns whether the result is an iterator: generators are, lists and arrays are not."""
    return hasattr(result, "__next__")


class Chunks:
    """The chunks of a response as bytes, and the content type of the first one."""

    def __init__(self, chunks: Iterator[Any], content_type: str | None) -> None:
        self._chunks = chunks
        self.content_type = content_type

    def __iter__(self) -> Chunks:
        return self

    def __next__(self) -> bytes:
        part = next(self._chunks)
        if isinstance(part, tuple):
            part, self.content_type = part[0], part[1]
        return body_bytes(part)

    def close(self) -> None:
        """Closes a generator whose remaining chunks are not needed: its `finally` runs."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()


def chunks_of(result: Any, accept: str) -> Chunks | None:
    """Returns None for a result that is not an iterator."""
    content_type = accept
    if isinstance(result, tuple) and len(result) == 2:
        result, content_type = result
    if not is_stream(result):
        return None
    return Chunks(result, None if content_type is None else str(content_type))


def joined(chunks: Chunks, status: int) -> Answer:
    """Joins all chunks to one response."""
    body = b"".join(chunks)
    return Answer(body, chunks.content_type, status)
