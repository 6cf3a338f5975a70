"""Responses in chunks: a script's function may return an iterator, or a tuple of an iterator and its content type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .script_response import ScriptResponse, body_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def is_stream(result: Any) -> bool:
    """Returns whether a result is an iterator, such as a generator. Lists and arrays are not iterators."""
    return hasattr(result, "__next__")


class Chunks:
    """Iterates over the chunks of a response as bytes. Has the content type of the first chunk."""

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
        """Closes a generator whose remaining chunks are not needed, so that its `finally` blocks run."""
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()


def to_chunks(result: Any, accept: str) -> Chunks | None:
    """Returns the chunks of a result; None if it is not an iterator."""
    content_type = accept
    if isinstance(result, tuple) and len(result) == 2:
        result, content_type = result
    if not is_stream(result):
        return None
    return Chunks(result, None if content_type is None else str(content_type))


def joined(chunks: Chunks, status: int) -> ScriptResponse:
    """Returns one response with all chunks."""
    body = b"".join(chunks)
    return ScriptResponse(body, chunks.content_type, status)
