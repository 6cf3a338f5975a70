"""What a script gave, as the bytes, the content type and the status of an answer."""

from __future__ import annotations

import json
import os
import traceback
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

_ERROR_CHARACTERS_MAX = 1 << 20
# Not shown in traces: what calls the script is not its author's.
_OWN_DIRECTORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class Answer:
    """One answer. `body` is bytes, `content_type` may be None, `headers` are what was said beside them."""

    __slots__ = ("body", "content_type", "headers", "status")

    def __init__(
        self, body: bytes, content_type: str | None, status: int, headers: dict[str, str] | None = None
    ) -> None:
        self.body = body
        self.content_type = content_type
        self.status = status
        self.headers = headers


def answer_of(result: Any, accept: str, status: int) -> Answer:
    """Of what an output_fn or a transform_fn returned: a body, a body and its type, or a response object of Flask's make."""
    content_type = accept
    if isinstance(result, tuple):
        result, content_type = result[0], result[1]
    elif hasattr(result, "get_data") and hasattr(result, "mimetype"):
        result, content_type, status = result.get_data(), result.mimetype, result.status_code
    return Answer(body_bytes(result), None if content_type is None else str(content_type), status)


def body_bytes(body: Any) -> bytes:
    """As multi-model-server sends it: text as UTF-8, what is neither text nor bytes as JSON."""
    if isinstance(body, str):
        return body.encode("utf-8")
    if isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body)
    return json.dumps(body).encode("utf-8")


def trace_of(error: BaseException) -> str:
    """The error as Python prints it, with the frames of the script and of what it calls."""
    shown = traceback.TracebackException.from_exception(error)
    frames = [frame for frame in shown.stack if not frame.filename.startswith(_OWN_DIRECTORY)]
    shown.stack = traceback.StackSummary.from_list(frames)
    # Python leaves the heading out where there is nothing below it.
    heading = "" if frames else "Traceback (most recent call last):\n"
    return heading + "".join(shown.format())


def failure_of(error: BaseException) -> Answer:
    """The toolkit's: the message, then the trace; the status that the error has, else 500. Never raises."""
    try:
        status, message = 500, str(error)
        # Whosever class it is: a script may bring a toolkit of its own.
        if all(hasattr(error, name) for name in ("status_code", "message", "phrase")):
            status, message = int(error.status_code), str(error.message)
        elif message == "":
            message = "Invalid Request"
        text = "%s\n%s" % (message, trace_of(error))
    except BaseException as second:  # noqa: BLE001 - what the error says of itself is the script's code
        status, text = 500, "Invalid Request\n%s: its message is not available" % type(second).__name__
    return Answer(text[:_ERROR_CHARACTERS_MAX].encode("utf-8", "backslashreplace"), "text/plain", status)
