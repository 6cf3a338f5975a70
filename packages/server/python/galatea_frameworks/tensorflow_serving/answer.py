"""What a request is answered with."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    """Of one request."""

    status: int
    content_type: str
    body: bytes
