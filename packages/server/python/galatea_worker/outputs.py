"""Encodes a model's responses. Small outputs are inside the frame; large ones are in the arena."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from . import datatypes, wire
from .objects import check_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .arena import Arena, Lent
    from .objects import InferenceResponse, Tensor


class Outputs:
    """Converts a model's responses to the input of `wire.encode_result`.

    `request_space(execution_id, sizes)` requests further blocks for outputs and returns [(lent_id, offset, size)].
    """

    def __init__(
        self,
        names: tuple[str, ...],
        inline_bytes_max: int,
        arena: Arena,
        request_space: Callable[[Any, list[int]], list[wire.Block]],
    ) -> None:
        self._names = names
        self._index = {name: index for index, name in enumerate(names)}
        self._inline_bytes_max = inline_bytes_max
        self._arena = arena
        self._request_space = request_space
        # Offsets, by block id, of blocks that contain outputs of the current execution and that the model can still write to.
        self._own = {}

    def encode(
        self,
        execution_id: Any,
        requests: Sequence[Any],
        responses: Sequence[InferenceResponse | None],
        spaces: list[wire.Block],
        lent: Sequence[Lent],
    ) -> list[wire.EncodedResponse]:
        """Returns a record for each response; a None response is sent later.

        Outputs may be written to `spaces`. A tensor in one of the blocks `lent` is passed by reference. The records must be passed to
        `settled` before they are sent.
        """
        self._own = {}
        encoded = []
        waiting = []
        output_count = parameter_count = 0
        for request, response in zip(requests, responses):
            if response is None:
                encoded.append(wire.LATER)
                continue
            error = response._error
            if error is not None:
                encoded.append(("error", error._code.value, error._message[:65536]))
                continue
            requested = request._requested
            everything = requested is self._names
            outputs = []
            for tensor in response._outputs:
                index = self._index.get(tensor._name)
                if index is None or not (everything or tensor._name in requested):
                    continue
                outputs.append(self._output(index, tensor, lent, waiting))
            output_count += len(outputs)
            parameters = ""
            if response._parameters:
                parameter_count += len(response._parameters)
                parameters = json.dumps(response._parameters)
            encoded.append(("outputs", parameters, outputs))
        if output_count > wire.OUTPUTS_MAX or parameter_count > wire.PARAMETERS_MAX:
            check_limit("the responses have %d outputs", output_count, wire.OUTPUTS_MAX)
            check_limit("the responses have %d parameters", parameter_count, wire.PARAMETERS_MAX)
        if waiting:
            self._place(execution_id, waiting, spaces)
            encoded = _placed(encoded)
        return encoded

    def settled(
        self, execution_id: int, encoded: list[wire.EncodedResponse], spaces: list[wire.Block], released: Sequence[int]
    ) -> list[wire.EncodedResponse]:
        """Returns the final records. Must be called after the model's objects were deleted.

        An output is copied if the model still uses its block, which is then not in `released`. Without this copy, a model that keeps an
        input could change its response later.
        """
        kept = self._own and {lent_id: offset for lent_id, offset in self._own.items() if lent_id not in released}
        if not kept:
            return encoded
        waiting = []

        def copied(output: wire.Output) -> wire.Output | _Large:
            index, datatype, shape, lent_id, offset, size = output
            if lent_id not in kept:
                return output
            waiting.append(_Large(index, datatype, shape, self._arena.bytes_at(kept[lent_id] + offset, size), size))
            return waiting[-1]

        encoded = [
            (kind, first, [copied(one) for one in second] if kind == "outputs" else second)
            for kind, first, second in encoded
        ]
        self._place(execution_id, waiting, spaces)
        return _placed(encoded)

    def _output(self, index: int, tensor: Tensor, lent: Sequence[Lent], waiting: list[_Large]) -> wire.Output | _Large:
        array = tensor._array
        datatype = tensor._datatype
        if array is None or datatype == datatypes.BYTES:
            # The tensor contains serialized elements, or is an unread input that is returned. In both cases, the tensor's bytes are the
            # output.
            array = np.ndarray((tensor._size,), np.uint8, tensor._buffer, tensor._offset)
            size = tensor._size
        else:
            size = array.nbytes
        if size <= self._inline_bytes_max:
            return (index, datatype, tensor._shape, wire.INLINE, 0, array.tobytes())
        if array.flags.c_contiguous and lent:
            offset = self._arena.offset_of(array)
            if offset != -1:
                for lent_id, flags, lent_offset, lent_size, _ in lent:
                    if lent_offset <= offset and offset + size <= lent_offset + lent_size:
                        if not flags & wire.LENT_SHARED:
                            self._own[lent_id] = lent_offset
                        return (index, datatype, tensor._shape, lent_id, offset - lent_offset, size)
        large = _Large(index, datatype, tensor._shape, array, size)
        waiting.append(large)
        return large

    def _place(self, execution_id: Any, waiting: list[_Large], spaces: list[wire.Block]) -> None:
        """Finds a block for each large output: first among the lent ones, then with one request for all others."""
        missing = []
        for large in waiting:
            for position, (lent_id, offset, size) in enumerate(spaces):
                if size >= large.size:
                    del spaces[position]
                    self._write(large, lent_id, offset)
                    break
            else:
                missing.append(large)
        if not missing:
            return
        blocks = self._request_space(execution_id, [large.size for large in missing])
        for large, (lent_id, offset, _) in zip(missing, blocks):
            self._write(large, lent_id, offset)

    def _write(self, large: _Large, lent_id: int, offset: int) -> None:
        self._arena.write_array(offset, large.array)
        large.placed = (large.index, large.datatype, large.shape, lent_id, 0, large.size)
        large.array = None


def _placed(encoded: list[tuple[Any, ...]]) -> list[wire.EncodedResponse]:
    return [
        (
            kind,
            first,
            [one.placed if isinstance(one, _Large) else one for one in second] if kind == "outputs" else second,
        )
        for kind, first, second in encoded
    ]


class _Large:
    """An output that is passed in the arena."""

    __slots__ = ("index", "datatype", "shape", "array", "size", "placed")

    def __init__(self, index: int, datatype: int, shape: tuple[int, ...], array: np.ndarray, size: int) -> None:
        self.index = index
        self.datatype = datatype
        self.shape = shape
        self.array = array
        self.size = size
        self.placed = None
