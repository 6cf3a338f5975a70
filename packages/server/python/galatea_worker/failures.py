"""Texts of exceptions in Triton's format."""

from __future__ import annotations

import importlib
import json
import os
from typing import TYPE_CHECKING

from . import wire

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .channel import Channel

TEXT_CHARACTERS_MAX = 65536
# Maximum number of stack frames in a traceback, which is more than Python's default recursion limit allows.
FRAMES_MAX = 1024
# Files whose frames are omitted from tracebacks of a model's errors.
_OWN_DIRECTORY = os.path.join(os.path.dirname(__file__), "")
_OWN_FILES = frozenset([importlib.__file__] + [_OWN_DIRECTORY + name for name in os.listdir(_OWN_DIRECTORY)])
# Directory of the programs that run users' scripts. A syntax error in a script is raised at the import in these programs.
_FRAMEWORKS_DIRECTORY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "galatea_frameworks", "")
_EVENT_LOOP = os.path.join("asyncio", "base_events.py")

# Out-of-memory exceptions of frameworks, by module and name. torch has two entries, because its exception was moved.
_OUT_OF_MEMORY = frozenset(
    (
        ("builtins", "MemoryError"),
        ("torch", "OutOfMemoryError"),
        ("torch.cuda", "OutOfMemoryError"),
        ("tensorflow.python.framework.errors_impl", "ResourceExhaustedError"),
    )
)


class ModelError(Exception):
    """Fails a whole batch, or a step of the model's lifecycle. Clients receive only this text."""


def is_out_of_memory(error: BaseException) -> bool:
    """Returns whether an exception is an out-of-memory error. Only its type counts, not its text."""
    try:
        return any((one.__module__, one.__qualname__) in _OUT_OF_MEMORY for one in type(error).__mro__)
    except BaseException:  # noqa: BLE001 - `__module__` and `__qualname__` may be the model's code
        return False


def describe(error: BaseException) -> str:
    """Returns `Type: text` and the traceback, at most TEXT_CHARACTERS_MAX characters. Never raises.

    The innermost frame is first, and the worker's own frames are omitted. If the text cannot be determined, the reason is appended, as
    pybind11 does for Triton.
    """
    return (str(error) if isinstance(error, ModelError) else _described(error))[:TEXT_CHARACTERS_MAX]


def failed_message(instance_name: str, error: BaseException) -> str:
    """Returns the error that clients receive when an execution has raised an exception."""
    return "Failed to process the request(s) for model '%s', message: %s" % (instance_name, describe(error))


def explain(error: BaseException, package_hint: str) -> None:
    """Appends the command that installs the missing module to the text of the error."""
    if isinstance(error, ModuleNotFoundError) and isinstance(error.msg, str) and package_hint:
        error.msg = "%s. %s" % (error.msg, package_hint)


def report(channel: Channel, message: str, request_ids: Iterable[str]) -> None:
    """Makes the server log a failed execution that no RESULT frame reports. May be called from any thread at any time."""
    request = ",".join(one for one in request_ids if one)[:TEXT_CHARACTERS_MAX]
    data = json.dumps({"message": message, "request": request}).encode("utf-8")
    channel.send_whenever(wire.frame(wire.RAISED, data))


def _described(error: BaseException) -> str:
    try:
        return _located(error, _text(error))
    except BaseException as second:  # noqa: BLE001 - `__str__` is the model's code, whose exceptions must not end the worker
        described = _located(error, "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>")
        try:
            reason = _located(second, _text(second))
        except BaseException:  # noqa: BLE001
            reason = "%s: <MESSAGE UNAVAILABLE>" % type(second).__name__
        return "%s\n\nMESSAGE UNAVAILABLE DUE TO EXCEPTION: %s" % (described.rstrip("\n"), reason)


def _text(error: BaseException) -> str:
    # Replaces lone surrogates, which cannot be encoded.
    return str(error)[:TEXT_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode("utf-8") or "<EMPTY MESSAGE>"


def _located(error: BaseException, text: str) -> str:
    text = "%s: %s" % (type(error).__name__, text)
    lines = []
    trace = error.__traceback__
    is_syntax = isinstance(error, SyntaxError) and isinstance(error.filename, str)
    is_script = False
    while trace is not None:
        code = trace.tb_frame.f_code
        # Frames of the event loop precede the model's code and are omitted.
        is_outside = code.co_filename in _OWN_FILES or code.co_filename.startswith("<frozen importlib")
        if is_syntax and code.co_filename.startswith(_FRAMEWORKS_DIRECTORY):
            is_outside = is_script = True
        if not is_outside and not (not lines and code.co_filename.endswith(_EVENT_LOOP)):
            lines.append("  %s(%d): %s\n" % (code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    if is_script:
        lines.append("  %s(%d): <module>\n" % (error.filename, error.lineno or 0))
    if not lines:
        return text
    lines.reverse()
    return text + "\n\nAt:\n" + "".join(lines[:FRAMES_MAX])
