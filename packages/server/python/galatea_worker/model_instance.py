"""The initialized model of this process. Decodes requests and encodes responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import objects, wire
from .inference_request import decode_request
from .outputs import Outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .arena import Arena, Lent
    from .channel import Channel
    from .inference_request import InferenceRequest


class ModelInstance:
    """The model after its initialization. `name` is for messages, `execute` is the model's method, and `channel` is the worker's socket."""

    __slots__ = ("name", "execute", "channel", "_arena", "_inline_bytes_max", "_input_names", "_output_names")

    def __init__(
        self,
        name: str,
        execute: Callable[[list[InferenceRequest]], Any],
        channel: Channel,
        arena: Arena,
        inline_bytes_max: int,
        names: tuple[Sequence[str], Sequence[str]],
    ) -> None:
        self.name = name
        self.execute = execute
        self.channel = channel
        self._arena = arena
        self._inline_bytes_max = inline_bytes_max
        self._input_names, self._output_names = map(tuple, names)

    def outputs_with(self, request_space: Callable[[Any, list[int]], list[wire.Block]]) -> Outputs:
        """Returns an encoder of responses. It calls `request_space` to request memory for large outputs."""
        return Outputs(self._output_names, self._inline_bytes_max, self._arena, request_space)

    def open_requests(
        self, execution_id: int, frame: memoryview
    ) -> tuple[list[InferenceRequest], list[wire.Block], list[Lent]]:
        """Returns the requests of an EXECUTE frame, the memory lent for outputs, and the blocks of inputs."""
        loans, spaces, wire_requests, inline_offset = wire.decode_execute(frame)
        inline = bytearray(frame[inline_offset:])
        lent = [
            (
                lent_id,
                flags,
                offset,
                size,
                self._arena.lend(lent_id, flags & wire.LENT_SHARED, offset, size, self.channel.release),
            )
            for lent_id, flags, offset, size in loans
        ]
        names = self._input_names
        requests = []
        for one in wire_requests:
            inputs = objects.tensors_from_wire(names, one.inputs, inline, lent)
            requested = self._output_names if one.requested is None else [self._output_names[i] for i in one.requested]
            requests.append(decode_request(one, inputs, requested, (execution_id, len(requests))))
        return requests, spaces, lent
