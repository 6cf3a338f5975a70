"""A request's one response, sent in the middle of `execute` or from a thread of the model's, in place of being returned."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .objects import InferenceResponse, TritonModelException

if TYPE_CHECKING:
    from .decoupled import Answers
    from .objects import InferenceRequest


FLAG_FINAL = 1


class Reply:
    """What was sent for one request; its senders and the worker share it."""

    __slots__ = ("changed", "closed", "response", "senders")

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.response = None
        self.closed = False
        self.senders = 0

    def wait(self) -> InferenceResponse | None:
        """Until there is a response, or nobody is left to send one; the response or None."""
        with self.changed:
            self.changed.wait_for(lambda: self.response is not None or self.senders == 0)
            return self.response


class InferenceResponseSender:
    """Made by `request.get_response_sender()`. A model that is not decoupled sends one response to a request."""

    __slots__ = ("_request", "__weakref__")

    def __init__(self, request: InferenceRequest) -> None:
        self._request = request
        with request._reply.changed:
            request._reply.senders += 1

    def __del__(self) -> None:
        reply = self._request._reply
        with reply.changed:
            reply.senders -= 1
            reply.changed.notify_all()

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Sends the response as it is now. Raises TritonModelException for what a model that is not decoupled cannot send."""
        _check_sent(response, flags)
        reply = self._request._reply
        with reply.changed:
            if reply.closed:
                raise TritonModelException("Unable to send response. Response sender has been closed.")
            if response is None and reply.response is None:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
                )
            if response is not None and reply.response is not None:
                raise TritonModelException(
                    "Unable to send response. Non-decoupled model cannot send more than one response."
                )
            reply.closed = flags == FLAG_FINAL
            if response is not None:
                reply.response = response.taken()
            reply.changed.notify_all()

    def is_cancelled(self) -> bool:
        """Whether the request's client has gone away."""
        return self._request.is_cancelled()


class DecoupledResponseSender(InferenceResponseSender):
    """Of a decoupled model: sends any number of responses, from any thread, until the final flag."""

    __slots__ = ("_answers",)

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def __del__(self) -> None:
        pass

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Sends the response as it is now, waiting while the client has not taken those before it."""
        _check_sent(response, flags)
        self._answers.send(response, flags == FLAG_FINAL)

    def is_cancelled(self) -> bool:
        """Whether the request's client has gone away."""
        return self._answers.is_cancelled()


def _check_sent(response: object, flags: int) -> None:
    if flags not in (0, FLAG_FINAL):
        raise TritonModelException("Unable to send response. Unsupported flag provided.")
    if response is None and flags == 0:
        raise TritonModelException("Inference Response object must be provided when the response flags is set to zero.")
    if response is not None and not isinstance(response, InferenceResponse):
        raise TypeError(
            "InferenceResponseSender.send: response must be a pb_utils.InferenceResponse, found %s"
            % type(response).__name__
        )
