"""Parses the Accept header."""

from __future__ import annotations


def parse_accept(accept: str) -> list[str]:
    """Returns the content types in the header, in order."""
    return accept.replace(" ", "").split(",")
