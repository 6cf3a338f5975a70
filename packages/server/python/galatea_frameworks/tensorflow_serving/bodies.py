"""Converts request bodies to JSON documents of TensorFlow Serving's REST API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from . import json_text
from .errors import ServingError

if TYPE_CHECKING:
    from typing import Any

_JSON = ("application/json", "application/jsonlines", "application/jsons")
_CSV = "text/csv"
_KEYS = ("instances", "inputs", "examples")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_LINE_END = re.compile(r"\r?\n")
_UNSUPPORTED = 415


def parse_document(body: bytes, content_type: str) -> Any:
    """Returns the document of a body. Raises ServingError, with status 415 for unsupported content types."""
    kind = content_type.split(";")[0].strip().lower()
    if kind in _JSON:
        return _of_json(body)
    if kind == _CSV:
        return _of_csv(json_text.text_of(body))
    raise ServingError("Unsupported Media Type: %s" % (kind or "Unknown"), status=_UNSUPPORTED)


def _of_json(body: bytes) -> Any:
    """Parses JSON: a request of TensorFlow Serving, a row, a list of rows, or several rows in sequence."""
    text = json_text.text_of(body)
    found = json_text.values(text)
    if len(found) > 1:
        return {"instances": found}
    (only,) = found
    if isinstance(only, dict) and any(key in only for key in _KEYS):
        return only
    if isinstance(only, list) and only and isinstance(only[0], list):
        return {"instances": only}
    return {"instances": [only]}


def _of_csv(text: str) -> Any:
    """Parses CSV: each line is a row with one value or a list of values. Values that are not numbers are text."""
    rows = []
    for line in _LINE_END.split(text.strip()):
        line = line.strip()
        if line:
            fields = [_number_or_text(field) for field in _fields(line)]
            rows.append(fields if len(fields) > 1 else fields[0])
    return {"instances": rows}


def _number_or_text(field: str) -> Any:
    found = field.strip()
    if not _NUMBER.fullmatch(found):
        return field
    return json_text.first_value(found)


def _fields(line: str) -> list[str]:
    """Splits a line at commas. Inside quotes, a comma is text and a doubled quote stands for one quote."""
    if '"' not in line:
        return line.split(",")
    fields = []
    field = []
    quoted = False
    at = 0
    while at < len(line):
        character = line[at]
        if character == '"':
            if quoted and line[at + 1 : at + 2] == '"':
                field.append('"')
                at += 1
            else:
                quoted = not quoted
        elif character == "," and not quoted:
            fields.append("".join(field))
            field = []
        else:
            field.append(character)
        at += 1
    return [*fields, "".join(field)]
