"""Parsers for parameters of a configuration. Each raises ModelError with Triton's text for an invalid value."""

from __future__ import annotations

from galatea_worker.failures import ModelError

_BOOLEANS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}
_DIGITS_MAX = 18


def boolean(text: str) -> bool:
    """Parses a boolean: true, on, 1, or false, off, 0."""
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise ModelError("failed to convert '%s' to boolean" % text)
    return value


def integer(text: str) -> int:
    """Parses an integer, which may be negative."""
    digits = text.strip().removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise ModelError("failed to convert '%s' to integral number" % text)
    return int(text)
