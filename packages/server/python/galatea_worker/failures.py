"""Exceptions as the text Triton shows."""

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
# Of the default limit of recursion all.
FRAMES_MAX = 1024
# Not shown in the traces of a model's errors.
_OWN_DIRECTORY = os.path.join(os.path.dirname(__file__), "")
_OWN_FILES = frozenset([importlib.__file__] + [_OWN_DIRECTORY + name for name in os.listdir(_OWN_DIRECTORY)])
# The programs that run scripts: a script's syntax error is raised where they import it.
_FRAMEWORKS_DIRECTORY = os.path.join(os.path.dirname(os.path.dirname(__file__)), "galatea_frameworks", "")
_EVENT_LOOP = os.path.join("asyncio", "base_events.py")

# What frameworks raise when there is no memory, by where they say that it is from. torch moved its own.
_OUT_OF_MEMORY = frozenset(
    (
        ("builtins", "MemoryError"),
        ("torch", "OutOfMemoryError"),
        ("torch.cuda", "OutOfMemoryError"),
        ("tensorflow.python.framework.errors_impl", "ResourceExhaustedError"),
    )
)


class Refused(Exception):
    """A whole batch, or a step of the model's life, fails with this text alone."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an exception is one of those by its type; its text says nothing."""
    try:
        return any((one.__module__, one.__qualname__) in _OUT_OF_MEMORY for one in type(error).__mro__)
    except BaseException:  # noqa: BLE001 - a class may name itself with anything
        return False


def describe(error: BaseException) -> str:
    """`Type: text`, then where: innermost frame first, frames of the worker itself left out; TEXT_CHARACTERS_MAX of it.

    Never raises. Of a text that cannot be had the reason is told, behind all the rest, as pybind11 does for Triton.
    """
    return (str(error) if isinstance(error, Refused) else _described(error))[:TEXT_CHARACTERS_MAX]


def failed_message(instance_name: str, error: BaseException) -> str:
    """Returns the error that clients receive from an execution that raised."""
    return "Failed to process the request(s) for model '%s', message: %s" % (instance_name, describe(error))


def explain(error: BaseException, package_hint: str) -> None:
    """Adds to the error of a missing module how to add its package."""
    if isinstance(error, ModuleNotFoundError) and isinstance(error.msg, str) and package_hint:
        error.msg = "%s. %s" % (error.msg, package_hint)


def report(channel: Channel, message: str, request_ids: Iterable[str]) -> None:
    """Makes the server log a failed execution whose RESULT does not say so. May be called from any thread at any time."""
    request = ",".join(one for one in request_ids if one)[:TEXT_CHARACTERS_MAX]
    data = json.dumps({"message": message, "request": request}).encode("utf-8")
    channel.send_whenever(wire.frame(wire.RAISED, data))


def _described(error: BaseException) -> str:
    try:
        return _located(error, _text(error))
    except BaseException as second:  # noqa: BLE001 - `__str__` is the model's code: whatever it raises must not end the worker
        described = _located(error, "<MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>")
        try:
            reason = _located(second, _text(second))
        except BaseException:  # noqa: BLE001
            reason = "%s: <MESSAGE UNAVAILABLE>" % type(second).__name__
        return "%s\n\nMESSAGE UNAVAILABLE DUE TO EXCEPTION: %s" % (described.rstrip("\n"), reason)


def _text(error: BaseException) -> str:
    # Half a pair of surrogates is no text that could be sent.
    return str(error)[:TEXT_CHARACTERS_MAX].encode("utf-8", "backslashreplace").decode("utf-8") or "<EMPTY MESSAGE>"


def _located(error: BaseException, text: str) -> str:
    text = "%s: %s" % (type(error).__name__, text)
    lines = []
    trace = error.__traceback__
    is_syntax = isinstance(error, SyntaxError) and isinstance(error.filename, str)
    is_script = False
    while trace is not None:
        code = trace.tb_frame.f_code
        # What an event loop adds stands outside of the model's frames.
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
