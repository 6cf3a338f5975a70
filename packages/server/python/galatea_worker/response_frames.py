"""Encodes single responses as RESPONSE frames. Memory for large outputs is requested separately for each response."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import wire
from .objects import TritonModelException, check_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .frame_reader import FrameReader
    from .model_instance import ModelInstance
    from .objects import InferenceResponse

_ASK_ID_MAX = 0x3FFFFFFF


class _Request:
    """The fields of a request that `Outputs` reads."""

    __slots__ = ("_requested",)

    def __init__(self, requested: Sequence[str]) -> None:
        self._requested = requested


class _Ask:
    """A request for memory in the arena, for one response."""

    __slots__ = ("execution_id", "ask_id", "granted")

    def __init__(self, execution_id: int) -> None:
        self.execution_id = execution_id
        self.ask_id = 0
        self.granted = None


class ResponseFrames:
    """Encodes RESPONSE frames. May be used by any thread."""

    def __init__(self, instance: ModelInstance, reader: FrameReader) -> None:
        self._channel = instance.channel
        self._reader = reader
        self._outputs = instance.outputs_with(self._ask_space)
        self._asks = {}
        self._last_ask = 0

    def frame(
        self, place: tuple[int, int], requested: Sequence[str], response: InferenceResponse, is_final: bool
    ) -> bytes:
        """Returns the frame of a response. `place` is the id of the request's execution and its index there."""
        execution_id, position = place
        ask = _Ask(execution_id)
        answer = self._outputs.answers(ask, (_Request(requested),), (response,), [], ())[0]
        frame = wire.encode_response(execution_id, position, is_final, answer, ask.ask_id)
        what = "Unable to send response. Its parameters and small tensors have %d bytes"
        check_limit(what, len(frame), wire.RESPONSE_FRAME_BYTES_MAX)
        return frame

    def granted(self, frame: memoryview) -> None:
        """Handles the SPACE frame that answers a memory request. The caller holds the reader's `changed`."""
        ask = self._asks.pop(wire.HEADER.unpack_from(frame, 0)[4] >> 1, None)
        if ask is not None:
            ask.granted = wire.decode_space(frame)

    def _ask_space(self, ask: _Ask, sizes: list[int]) -> list[wire.Block]:
        """Returns blocks for the outputs of one response: [(lent_id, offset, size)]."""
        with self._reader.changed:
            self._last_ask = self._last_ask % _ASK_ID_MAX + 1
            ask.ask_id = self._last_ask
            self._asks[ask.ask_id] = ask
        self._channel.send(wire.encode_space_request(ask.execution_id, sizes, ask.ask_id))
        self._reader.wait(lambda: ask.granted is not None)
        if ask.granted is None:
            raise TritonModelException("Unable to send response. The server is gone.")
        blocks, reason = ask.granted
        if blocks is None:
            ask.ask_id = 0
            raise TritonModelException(reason)
        return blocks
