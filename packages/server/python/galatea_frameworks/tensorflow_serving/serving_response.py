"""The response type of this package."""

from __future__ import annotations

from typing import NamedTuple


class ServingResponse(NamedTuple):
    """The response to one request."""

    status: int
    content_type: str
    body: bytes
