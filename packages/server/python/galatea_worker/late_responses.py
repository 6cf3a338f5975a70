"""Sends responses of a model that is not decoupled after `execute` has returned."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import wire
from .failures import ModelError, failed_message, report
from .response_frames import ResponseFrames

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from .frame_reader import FrameReader
    from .model_instance import ModelInstance
    from .objects import InferenceResponse
    from .response_sender import Reply

_DROPPED = "The response sender went away without having sent a response."


class LateResponses:
    """Sends late responses. Created for the first one, after the RESULT frame that announces it."""

    def __init__(self, instance: ModelInstance, reader: FrameReader) -> None:
        self._instance = instance
        self._channel = instance.channel
        self._frames = ResponseFrames(instance, reader)
        # Requests with a late response, by execution id and request index. The value is True if the request was cancelled.
        self._open = {}

    def take_over(self, replies: Sequence[Reply], cancelled: Container[int]) -> None:
        """Registers the late responses of an execution. `cancelled` contains the indexes of cancelled requests."""
        for reply in replies:
            self._open[reply.request_key] = reply.request_key[1] in cancelled
            response = reply.hand_over(self)
            if response is not None:
                self.send(reply, response)

    def send(self, reply: Reply, response: InferenceResponse) -> None:
        """Sends the only response to a request."""
        self._channel.send(self._frames.frame(reply.request_key, reply.requested, response, True))
        self._open.pop(reply.request_key, None)

    def dropped(self, reply: Reply) -> None:
        """Reports that a response cannot be sent any more, because its senders were deleted. Never waits for a lock."""
        self._open.pop(reply.request_key, None)
        message = _DROPPED
        if not reply.has_sender:
            refused = ModelError("Expected a list in the execute return, found type '%s'." % type(None))
            message = failed_message(self._instance.name, refused)
            report(self._channel, message, [reply.request_id])
        self._channel.send_whenever(wire.encode_response(*reply.request_key, True, ("error", 1, message), 0))

    def takes(self, frame: memoryview, kind: int, execution_id: int, extra: int) -> bool:
        """Handles a frame and returns True if it concerns a late response; otherwise returns False. The caller must hold the reader's
        `changed`."""
        if kind == wire.SPACE and extra >> 1:
            self._frames.granted(frame)
            return True
        if kind == wire.CANCEL and (execution_id, extra) in self._open:
            self._open[execution_id, extra] = True
            return True
        return False

    def is_request_cancelled(self, request_key: tuple[int, int]) -> bool:
        """Returns whether the request was cancelled."""
        return self._open.get(request_key, False)
