"""Sends the only response to a request during `execute`, from any thread or task of the model, instead of returning it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from . import current_worker
from .objects import InferenceResponse, TritonModelException
from .signatures import MODULE, ArgumentMismatch, checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    class LateReceiver(Protocol):
        """Receives responses that are sent after `execute` has returned."""

        def send(self, reply: Reply, response: InferenceResponse) -> None: ...

        def dropped(self, reply: Reply) -> None: ...


FLAG_FINAL = 1
SEND = (
    "(self: c_python_backend_utils.InferenceResponseSender,"
    " response: c_python_backend_utils.InferenceResponse = None, flags: int = 0) -> None"
)
# Marks a response that was already given to the server.
_PASSED_ON = object()


class Reply:
    """The response to a request, and its receiver: the worker until `execute` has returned, a LateReceiver afterwards.

    The request and its response senders hold references to this object. When the last reference is dropped, no response can be sent any
    more.
    """

    __slots__ = ("request_key", "request_id", "requested", "has_sender", "_lock", "_response", "_is_closed", "_late")

    def __init__(self, request_key: tuple[int, int], request_id: str, requested: Sequence[str]) -> None:
        self.request_key = request_key
        self.request_id = request_id
        self.requested = requested
        self.has_sender = False
        self._lock = threading.Lock()
        self._response = None
        self._is_closed = False
        self._late = None

    def __del__(self) -> None:
        # Python may run this in any thread at any time.
        if self._late is not None and self._response is None:
            self._late.dropped(self)

    def send(self, response: InferenceResponse | None, is_final: bool) -> None:
        """Sends the response in its current state. Raises TritonModelException if the model cannot send this response."""
        with self._lock:
            if self._is_closed:
                raise TritonModelException("Unable to send response. Response sender has been closed.")
            if response is None and self._response is None:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
                )
            if response is not None and self._response is not None:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send more than one response."
                )
            late = self._late
            if response is not None:
                self._response = response._copy() if late is None else _PASSED_ON
            self._is_closed = is_final
        if response is None or late is None:
            return
        try:
            late.send(self, response)
        except BaseException:
            with self._lock:
                self._response = None
                self._is_closed = False
            raise

    def settle(self, response: InferenceResponse | None) -> InferenceResponse | None:
        """Returns the response that was sent; otherwise `response`, which `execute` has returned; None if there is neither."""
        with self._lock:
            if self._response is None:
                self._response = response
            return self._response

    def hand_over(self, late: LateReceiver) -> InferenceResponse | None:
        """Gives later responses to this receiver. Returns the response that was sent since `settle`; None if there is none."""
        with self._lock:
            self._late = late
            response = self._response
            if response is not None:
                self._response = _PASSED_ON
            return response


class InferenceResponseSender:
    """Sends responses; created by `request.get_response_sender()`. A model that is not decoupled sends one response to a request."""

    __module__ = MODULE
    __slots__ = ("_reply", "__weakref__")

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        reply.has_sender = True

    @checked(SEND)
    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Sends the response in its current state.

        Raises TritonModelException if a model that is not decoupled cannot send this response.
        """
        check_sent(response, flags)
        self._reply.send(response, flags == FLAG_FINAL)

    def is_cancelled(self) -> bool:
        """Returns whether the request was cancelled."""
        return current_worker.is_request_cancelled(*self._reply.request_key)


def check_sent(response: object, flags: int) -> None:
    """Checks a response. Raises ArgumentMismatch, or TritonModelException with Triton's text, if it is invalid."""
    if not isinstance(response, (InferenceResponse, type(None))) or not isinstance(flags, int):
        raise ArgumentMismatch
    if flags not in (0, FLAG_FINAL):
        raise TritonModelException("Unable to send response. Unsupported flag provided.")
    if response is None and flags == 0:
        raise TritonModelException("Inference Response object must be provided when the response flags is set to zero.")
