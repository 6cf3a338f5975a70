"""Encodes single responses as RESPONSE frames. Memory for large outputs is requested for each response separately."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import wire
from .objects import TritonModelException, check_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .frame_reader import FrameReader
    from .model_instance import ModelInstance
    from .objects import InferenceResponse

_SPACE_REQUEST_ID_MAX = 0x3FFFFFFF


class _Request:
    """The fields of a request that `Outputs` reads."""

    __slots__ = ("_requested",)

    def __init__(self, requested: Sequence[str]) -> None:
        self._requested = requested


class _SpaceRequest:
    """A request for memory in the arena, for one response."""

    __slots__ = ("execution_id", "request_id", "granted")

    def __init__(self, execution_id: int) -> None:
        self.execution_id = execution_id
        self.request_id = 0
        self.granted = None


class ResponseFrames:
    """Encodes RESPONSE frames. May be used by any thread."""

    def __init__(self, instance: ModelInstance, reader: FrameReader) -> None:
        self._channel = instance.channel
        self._reader = reader
        self._outputs = instance.outputs_with(self._request_space)
        self._space_requests = {}
        self._last_request = 0

    def frame(
        self, request_key: tuple[int, int], requested: Sequence[str], response: InferenceResponse, is_final: bool
    ) -> bytes:
        """Returns the frame of a response. `request_key` is the id of the execution and the request's index in it."""
        execution_id, request_index = request_key
        space_request = _SpaceRequest(execution_id)
        encoded = self._outputs.encode(space_request, (_Request(requested),), (response,), [], ())[0]
        frame = wire.encode_response(execution_id, request_index, is_final, encoded, space_request.request_id)
        what = "Unable to send response. Its parameters and small tensors have %d bytes"
        check_limit(what, len(frame), wire.RESPONSE_FRAME_BYTES_MAX)
        return frame

    def granted(self, frame: memoryview) -> None:
        """Handles the SPACE frame, which is the response to a memory request. The caller must hold the reader's `changed`."""
        space_request = self._space_requests.pop(wire.HEADER.unpack_from(frame, 0)[4] >> 1, None)
        if space_request is not None:
            space_request.granted = wire.decode_space(frame)

    def _request_space(self, space_request: _SpaceRequest, sizes: list[int]) -> list[wire.Block]:
        """Returns blocks for the outputs of one response: [(lent_id, offset, size)]."""
        with self._reader.changed:
            self._last_request = self._last_request % _SPACE_REQUEST_ID_MAX + 1
            space_request.request_id = self._last_request
            self._space_requests[space_request.request_id] = space_request
        self._channel.send(wire.encode_space_request(space_request.execution_id, sizes, space_request.request_id))
        self._reader.wait(lambda: space_request.granted is not None)
        if space_request.granted is None:
            raise TritonModelException("Unable to send response. The server is gone.")
        blocks, reason = space_request.granted
        if blocks is None:
            space_request.request_id = 0
            raise TritonModelException(reason)
        return blocks
