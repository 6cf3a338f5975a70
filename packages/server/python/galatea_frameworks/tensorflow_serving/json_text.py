"""Parses JSON as TensorFlow Serving does, and prints values as its errors quote them."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING

from .errors import ServingError

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Maximum length of a quoted value in an error.
_SHOWN_MAX = 256
_INDENT = "    "
_BYTE_ORDER_MARK = "\ufeff"

_WORDS = {
    "Expecting value": "Invalid value.",
    "Expecting property name enclosed in double quotes": "Missing a name for object member.",
    "Expecting ':' delimiter": "Missing a colon after a name of object member.",
    "Unterminated string starting at": "Missing a closing quotation mark in string.",
    "Invalid control character at": "Invalid encoding in string.",
    "Invalid \\escape": "Invalid escape character in string.",
    "Invalid \\uXXXX escape": "Incorrect hex digit after \\u escape in string.",
}
_COMMA = "Expecting ',' delimiter"


def text_of(body: bytes) -> str:
    """Decodes a body. Invalid UTF-8 in strings is kept as surrogates."""
    return body.decode("utf-8", "surrogateescape").removeprefix(_BYTE_ORDER_MARK)


def bytes_of(text: str) -> bytes:
    """Returns the bytes of a string from a request."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise ServingError("JSON Parse error: The surrogate pair in string is invalid.") from None


def first_value(text: str) -> Any:
    """Returns the first JSON value and ignores everything after it. Raises ServingError."""
    return _value_at(text, _space_end(text, 0), _decoder_for(text))[0]


def values(text: str) -> list[Any]:
    """Returns all JSON values of a text in which values are separated by white space. Raises ServingError."""
    found = []
    decode = _decoder_for(text)
    at = _space_end(text, 0)
    while at < len(text) or not found:
        value, at = _value_at(text, at, decode)
        found.append(value)
        at = _space_end(text, at)
    return found


def _space_end(text: str, at: int) -> int:
    return json.decoder.WHITESPACE.match(text, at).end()


def _checked_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise OverflowError
    return number


def _checked_integer(text: str) -> int:
    number = int(text)
    # Raises OverflowError if the number is too large for a double.
    float(number)
    return number


_decode = json.JSONDecoder().raw_decode
# This decoder takes three times as long. It is used only if a number may be too large.
_decode_checked = json.JSONDecoder(parse_float=_checked_float, parse_int=_checked_integer).raw_decode
_MAYBE_TOO_LARGE = re.compile(r"[0-9.][eE]\+?0*[1-9][0-9]{2}|[0-9]{300}")


def _decoder_for(text: str) -> Callable[..., Any]:
    return _decode_checked if _MAYBE_TOO_LARGE.search(text) else _decode


def _value_at(text: str, at: int, decode: Callable[..., Any]) -> tuple[Any, int]:
    if at == len(text):
        raise ServingError("JSON Parse error: The document is empty" + (" at offset: %d" % at if at > 0 else ""))
    try:
        return decode(text, at)
    except json.JSONDecodeError as error:
        raise ServingError(_sentence(_words(error), text, error.pos)) from None
    except RecursionError:
        raise ServingError("JSON Parse error: arrays and objects are nested too deep to be read") from None
    except (ValueError, OverflowError):
        # Python raises ValueError for an integer with too many digits.
        raise ServingError("JSON Parse error: Number too big to be stored in double.") from None


def _sentence(words: str, text: str, at: int) -> str:
    offset = len(text[:at].encode("utf-8", "surrogateescape"))
    return "JSON Parse error: %s at offset: %d" % (words, offset)


def _words(error: json.JSONDecodeError) -> str:
    if error.msg == _COMMA:
        return (
            "Missing a comma or } after an object member."
            if _is_in_object(error.doc, error.pos)
            else "Missing a comma or ] after an array element."
        )
    return _WORDS.get(error.msg, "Invalid value.")


def _is_in_object(text: str, end: int) -> bool:
    """Returns whether the innermost open bracket at this position belongs to an object."""
    open_now = []
    at = 0
    while at < end:
        character = text[at]
        if character == '"':
            at += 1
            while at < end and text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif character in "[{":
            open_now.append(character)
        elif character in "]}" and open_now:
            open_now.pop()
        at += 1
    return bool(open_now) and open_now[-1] == "{"


def shown(value: Any) -> str:
    """Returns a value as an error quotes it. A long value is truncated."""
    parts = _LimitedText()
    _show(value, 0, parts)
    return "".join(parts.texts)


class _LimitedText:
    def __init__(self) -> None:
        self.texts = []
        self._length = 0

    def add(self, text: str) -> bool:
        """Appends to the text. Returns False if the limit is reached."""
        if self._length >= _SHOWN_MAX:
            return False
        self.texts.append(text)
        self._length += len(text)
        return True


def _show(value: Any, depth: int, parts: _LimitedText) -> bool:
    if isinstance(value, list):
        if not parts.add("["):
            return False
        for index, one in enumerate(value):
            if index > 0 and not parts.add(", "):
                return False
            if not _show(one, depth, parts):
                return False
        return parts.add("]")
    if isinstance(value, dict):
        if not parts.add("{"):
            return False
        inner = "\n" + _INDENT * (depth + 1)
        for index, (name, one) in enumerate(value.items()):
            if not parts.add(("," if index > 0 else "") + inner + json.dumps(name, ensure_ascii=False) + ": "):
                return False
            if not _show(one, depth + 1, parts):
                return False
        return parts.add("\n" + _INDENT * depth + "}" if value else "}")
    return parts.add(json.dumps(value, ensure_ascii=False))


def type_name(value: Any) -> str:
    """Returns the name of a JSON type in TensorFlow Serving's errors."""
    if value is None:
        return "Null"
    if value is True or value is False:
        return "True" if value else "False"
    for kind, name in ((dict, "Object"), (list, "Array"), (str, "String")):
        if isinstance(value, kind):
            return name
    return "Number"
