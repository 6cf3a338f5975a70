"""Prints tensors as JSON exactly as TensorFlow Serving does, including line breaks and digits."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import numpy as np

from .errors import ServingError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INDENT = "    "
# String outputs whose name has this suffix are printed in base64.
_BYTES_SUFFIX = "_bytes"


def rows(outputs: dict[str, np.ndarray]) -> bytes:
    """Returns the response to a request in row format, with an element for each row. Raises ServingError."""
    count = -1
    for name, value in outputs.items():
        if value.ndim == 0:
            raise ServingError("Tensor name: %s has no shape information " % name)
        if count not in (-1, len(value)):
            raise ServingError(
                "Tensor name: %s has inconsistent batch size: %d expecting: %d" % (name, len(value), count)
            )
        count = len(value)
    texts = {name: _nested(_texts(name, value), value.shape[1:], None) for name, value in outputs.items()}
    if len(texts) == 1:
        (only,) = texts.values()
        listed = "[%s\n%s]" % (", ".join(only), _INDENT) if only else "[]"
    else:
        names = [(_string(name), column) for name, column in texts.items()]
        inner = "\n" + _INDENT * 3
        objects = (
            "{%s\n%s}" % (",".join("%s%s: %s" % (inner, name, column[row]) for name, column in names), _INDENT * 2)
            for row in range(count)
        )
        listed = _broken(list(objects), 1)
    return _object("predictions", listed)


def columns(outputs: dict[str, np.ndarray]) -> bytes:
    """Returns the response to a request in column format, with whole tensors."""
    if len(outputs) == 1:
        ((name, value),) = outputs.items()
        return _object("outputs", _nested(_texts(name, value), value.shape, 1)[0])
    inner = "\n" + _INDENT * 2
    members = [
        "%s%s: %s" % (inner, _string(name), _nested(_texts(name, value), value.shape, 2)[0])
        for name, value in outputs.items()
    ]
    return _object("outputs", "{%s\n%s}" % (",".join(members), _INDENT))


def classes(results: Sequence[Sequence[tuple[bytes, np.float32]]]) -> bytes:
    """Returns the response to a classify request."""
    listed = []
    for found in results:
        scores = _floats(np.array([score for _, score in found], dtype=np.float32))
        pairs = ("[%s, %s]" % (_string(label), score) for (label, _), score in zip(found, scores))
        listed.append("[%s]" % ", ".join(pairs))
    return _object("results", "[%s\n%s]" % (", ".join(listed), _INDENT))


def regressions(values: np.ndarray) -> bytes:
    """Returns the response to a regress request."""
    return _object("results", "[%s]" % ", ".join(_floats(values)))


def error(message: str) -> bytes:
    """Returns the response to a failed request."""
    return _object("error", _string(message))


def _object(name: str, value: str) -> bytes:
    return ('{\n%s"%s": %s\n}' % (_INDENT, name, value)).encode("utf-8", "surrogateescape")


def _string(value: str | bytes) -> str:
    if isinstance(value, bytes):
        value = value.decode("utf-8", "surrogateescape")
    return json.dumps(value, ensure_ascii=False)


def _broken(texts: list[str], depth: int) -> str:
    """Prints a list with one element per line."""
    if not texts:
        return "[]"
    inner = "\n" + _INDENT * (depth + 1)
    return "[%s%s\n%s]" % (inner, ("," + inner).join(texts), _INDENT * depth)


def _nested(texts: list[str], shape: Sequence[int], depth: int | None) -> list[str]:
    """Prints nested lists. `depth` is the depth of the outermost list; None prints everything on one line."""
    for level in range(len(shape) - 1, -1, -1):
        size = shape[level]
        if size == 0:
            texts = ["[]"] * int(np.prod(shape[:level], dtype=np.int64))
            continue
        parts = (texts[at : at + size] for at in range(0, len(texts), size))
        texts = ["[%s]" % ", ".join(part) if depth is None else _broken(part, depth + level) for part in parts]
    return texts


def _texts(name: str, value: np.ndarray) -> list[str]:
    """Returns the text of each element. Raises ServingError for a datatype that JSON cannot represent."""
    kind = value.dtype.kind
    flat = value.reshape(-1)
    if value.dtype in (np.float32, np.float64):
        return _floats(flat)
    if kind == "b":
        return ["true" if one else "false" for one in flat.tolist()]
    if kind in "iu" and value.dtype != np.uint16:
        return list(map(str, flat.tolist()))
    if kind == "O":
        if name.endswith(_BYTES_SUFFIX):
            pattern = "{%s}" % '"b64": "%s"'
            return [pattern % base64.b64encode(one).decode("ascii") for one in flat]
        return [_string(one) for one in flat]
    raise ServingError("Failed to write JSON value for tensor type: %s" % value.dtype.name.replace("float16", "half"))


def _floats(values: np.ndarray) -> list[str]:
    """Prints each number with six digits if they represent it exactly; otherwise with the maximum number of digits of its type."""
    numbers = values.tolist()
    texts = ["%g" % one for one in numbers]
    back = np.array(list(map(float, texts)), dtype=np.float64)
    with np.errstate(over="ignore"):
        wrong = np.flatnonzero(back.astype(values.dtype) != values)
    digits = "%.9g" if values.dtype == np.float32 else "%.17g"
    for place in wrong.tolist():
        texts[place] = digits % numbers[place]
    for place in np.flatnonzero(~np.isfinite(values)).tolist():
        number = numbers[place]
        texts[place] = "NaN" if number != number else "Infinity" if number > 0 else "-Infinity"
    return [text if "." in text or "e" in text or text[-1] in "yN" else text + ".0" for text in texts]
