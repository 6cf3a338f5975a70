"""The Accept header."""

from __future__ import annotations


def parse_accept(accept: str) -> list[str]:
    """The types that it names, in their order."""
    return accept.replace(" ", "").split(",")
