"""Converts the result of a script to the body, content type and status of a response."""

from __future__ import annotations

import json
import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_ERROR_CHARACTERS_MAX = 1 << 20
# Directory of files that are omitted from tracebacks, because they are not the script author's code.
_OWN_DIRECTORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class ScriptResponse:
    """A response. `body` is bytes, `content_type` may be None, `headers` are additional headers."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self, body: bytes, content_type: str | None, status: int, headers: dict[str, str] | None = None
    ) -> None:
        self.body = body
        self.content_type = content_type
        self.status = status
        self.headers = headers


def to_response(result: Any, accept: str, status: int) -> ScriptResponse:
    """Converts the result of an output_fn or transform_fn. The result is a body, a tuple of body and type, or a Flask response."""
    content_type = accept
    if isinstance(result, tuple):
        result, content_type = result[0], result[1]
    elif hasattr(result, "get_data") and hasattr(result, "mimetype"):
        result, content_type, status = result.get_data(), result.mimetype, result.status_code
    return ScriptResponse(body_bytes(result), None if content_type is None else str(content_type), status)


def body_bytes(body: Any) -> bytes:
    """Converts a body to bytes like multi-model-server: text becomes UTF-8, bytes are unchanged, and other values become JSON."""
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return json.dumps(body).encode("utf-8")


def format_trace(error: BaseException) -> str:
    """Returns the traceback of an error in Python's format, with the frames of the script and of functions that it calls."""
    shown = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in shown.stack if not frame.filename.startswith(_OWN_DIRECTORY)]
    shown.stack = traceback.StackSummary.from_list(frames)
    # Added here because Python omits the heading if there are no frames.
    heading = "" if frames else "Traceback (most recent call last):\n"
    return heading + "".join(shown.format())


def error_response(error: BaseException) -> ScriptResponse:
    """Returns the toolkit's error response: the message, then the traceback. Its status is the error's status, or 500. Never raises."""
    try:
        status, message = 500, str(error)
        # The error is recognized by its attributes and not by its class, because a script may contain its own copy of the toolkit.
        if all(hasattr(error, name) for name in ("status_code", "message", "phrase")):
            status, message = int(error.status_code), str(error.message)
        elif message == "":
            message = "Invalid Request"
        text = "%s\n%s" % (message, format_trace(error))
    except BaseException as second:  # noqa: BLE001 - `__str__` of the error is the script's code
        status, text = 500, "Invalid Request\n%s: its message is not available" % type(second).__name__
    return ScriptResponse(text[:_ERROR_CHARACTERS_MAX].encode("utf-8", "backslashreplace"), "text/plain", status)
