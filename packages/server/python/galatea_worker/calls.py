"""The calls of this process's model to other models of the namespace. This module is imported at the first call."""

from __future__ import annotations

import collections
import json
from typing import TYPE_CHECKING

import numpy as np

from . import call_wire, datatypes, objects, wire
from .arena import LentBlock
from .objects import InferenceResponse, TritonError, TritonModelException, check_limit
from .signatures import MODULE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from .arena import Arena, Lent
    from .channel import Channel
    from .frame_reader import FrameReader
    from .objects import CallRequest, Tensor


_CALL_ID_MAX = 0xFFFFFFFF
# Number of read responses after which the server is notified: half of the server's limit. A message for each response would cost more.
_TAKEN_STEP = 8
_SERVER_GONE = "The server is gone."


class _Call:
    """A call to another model, from the first frame until the last response was read."""

    __slots__ = (
        "id",
        "execution_id",
        "responses",
        "is_last_there",
        "is_dropped",
        "is_cancelled",
        "is_stream",
        "is_sent",
        "space",
        "done",
    )

    def __init__(self, execution_id: int | None, is_stream: bool) -> None:
        self.id = 0
        self.execution_id = execution_id
        # Frames with responses that have not been decoded yet.
        self.responses = collections.deque()
        self.is_last_there = False
        self.is_dropped = False
        # True if the calling model has cancelled the call.
        self.is_cancelled = False
        self.is_stream = is_stream
        self.is_sent = False
        # The server's reply to the request for memory.
        self.space = None
        # Callback for a new response; None if no coroutine awaits the call. The thread that reads the socket calls it.
        self.done = None


class Calls:
    """The calls of this process.

    `reader` decides which thread reads the socket. `limit` is the maximum number of concurrent calls. Coroutines await `response_to(call)`
    until `take` would not block, which means that a response or the end of the call has arrived.
    """

    def __init__(
        self,
        channel: Channel,
        reader: FrameReader,
        arena: Arena,
        inline_bytes_max: int,
        limit: int,
        response_to: Callable[[_Call], Awaitable[None]],
    ) -> None:
        self._channel = channel
        self._reader = reader
        self._arena = arena
        self._inline_bytes_max = inline_bytes_max
        self.response_to = response_to
        # Half of the limit is for calls that wait for a response, the other half for streams with unread responses.
        self._most = limit // 2
        self._waited_count = 0
        self._stream_count = 0
        # Callbacks for a free slot, one for each waiting call. A callback returns False if its caller does not wait any more.
        self.vacancies = collections.deque()
        self._open = {}
        self._last_id = 0
        # Lent blocks of responses that this process still uses, by id: [execution_id, flags, offset, size].
        self._lent = {}
        # The blocks that contain outputs of the current response, and those among them that are no longer used.
        self._pinned = ()
        self._unpinned = []
        self._released = collections.deque()

    # Handling of incoming frames.

    def dispatch(self, frame: memoryview, kind: int, call_id: int) -> None:
        """Handles a frame about a call. The caller must hold the reader's `changed`."""
        call = self._open.get(call_id)
        if call is None:
            return
        if kind == wire.CALL_SPACE:
            call.space = wire.decode_space(frame)
            if call.space[0] is None:
                self._close(call)
        else:
            call.responses.append(bytes(frame))
            if kind == wire.CONTROL_RESULT or wire.HEADER.unpack_from(frame, 0)[4] & call_wire.LAST:
                call.is_last_there = True
                self._close(call)
            if call.is_dropped:
                self._forget(call)
            elif call.done is not None:
                call.done()

    def _close(self, call: _Call) -> None:
        """Ends a call after the server's last frame about it, so that its number can be reused. The caller must hold `changed`."""
        del self._open[call.id]
        if call.is_stream:
            self._stream_count -= 1
            return
        self._waited_count -= 1
        self._notify_vacancy()

    def _notify_vacancy(self) -> None:
        while self.vacancies:
            if self.vacancies.popleft()():
                return

    def remove_vacancy_callback(self, notify: Callable[[], bool]) -> None:
        """Removes a callback. If it was already given a slot, the slot is given to the next one. The caller must hold `changed`."""
        try:
            self.vacancies.remove(notify)
        except ValueError:
            self._notify_vacancy()

    # Sending of calls.

    def begin(self, call: _Call) -> bool:
        """Assigns a number to the call. Returns False if the call must wait for another one to end. The caller must hold `changed`."""
        if call.is_stream:
            if self._stream_count >= self._most:
                raise TritonModelException(
                    "%d calls of decoupled models have unread responses; read those before more calls" % self._most
                )
            self._stream_count += 1
        elif self._waited_count >= self._most:
            return False
        else:
            self._waited_count += 1
        while True:
            self._last_id = self._last_id % _CALL_ID_MAX + 1
            if self._last_id not in self._open:
                break
        call.id = self._last_id
        self._open[call.id] = call
        return True

    def _wait_and_begin(self, call: _Call) -> _Call:
        """Assigns a number to the call, after waiting for a free slot if necessary."""
        while True:
            with self._reader.changed:
                if self.begin(call):
                    return call
            self._reader.wait(lambda: self._waited_count < self._most)
            self._check_server()

    def _check_server(self) -> None:
        if self._reader.is_over:
            raise TritonModelException(_SERVER_GONE)

    def open(self, request: CallRequest, execution_id: int | None, is_stream: bool) -> _Call:
        """Sends a request and returns the call. If the request could not be sent, the call has an error response."""
        return self.send(self._wait_and_begin(_Call(execution_id, is_stream)), request)

    def send(self, call: _Call, request: CallRequest) -> _Call:
        """Sends the request of a call that has a number."""
        try:
            return self._send(call, request)
        except BaseException:
            if not call.is_sent:
                self._take_back(call)
            raise

    def _take_back(self, call: _Call) -> None:
        """Cancels a call that was not sent. The server has received at most the call's request for memory."""
        with self._reader.changed:
            if call.id not in self._open:
                return
            self._close(call)
            if call.space is not None:
                self._channel.send(call_wire.encode_cancel(call.id))

    def _send(self, call: _Call, request: CallRequest) -> _Call:
        self.flush()
        check_limit("the request has %d inputs", len(request.inputs), wire.NAMES_MAX)
        check_limit("the request has %d requested outputs", len(request.requested), wire.NAMES_MAX)
        text = _text_of_call(call, request)
        tensors, waiting = [], []
        for index, tensor in enumerate(request.inputs):
            tensors.append(self._encode_tensor(index, tensor, waiting))
        if waiting:
            reason = self._fill(call, tensors, waiting)
            if reason is not None:
                call.responses.append(("error", reason))
                call.is_last_there = True
                return call
        data = call_wire.encode_message(wire.CALL, call.id, call_wire.STREAMED if call.is_stream else 0, text, tensors)
        check_limit("the request's parameters and small tensors have %d bytes", len(data), wire.FRAME_BYTES_MAX)
        call.is_sent = True
        self._channel.send(data)
        return call

    def _encode_tensor(self, index: int, tensor: Tensor, waiting: list[tuple[int, np.ndarray]]) -> tuple[Any, ...]:
        """Returns a tensor in the form of a frame.

        Small tensors are inline. Tensors that are in the arena and not writable are passed by reference. Others are copied to memory of the
        call.
        """
        array = tensor._array
        if array is None or tensor._datatype == datatypes.BYTES:
            block = tensor._buffer
            array = np.ndarray((tensor._size,), np.uint8, block, tensor._offset)
            if (
                type(block) is LentBlock
                and tensor._size > self._inline_bytes_max
                and (block.is_shared or not block.is_viewed)
            ):
                # From now on, the called model reads the block too, so the calling model must copy it before writing.
                block.is_shared = True
                return (index, tensor._datatype, tensor._shape, block.lent_id, tensor._offset, tensor._size)
        if array.nbytes <= self._inline_bytes_max:
            return (index, tensor._datatype, tensor._shape, wire.INLINE, 0, array.tobytes())
        waiting.append((index, array))
        return (index, tensor._datatype, tensor._shape)

    def _fill(self, call: _Call, tensors: list[tuple[Any, ...]], waiting: list[tuple[int, np.ndarray]]) -> str | None:
        """Requests memory for tensors and copies the tensors to it. Returns the reason if there is no memory."""
        self._channel.send(call_wire.encode_space_request(call.id, [array.nbytes for _, array in waiting]))
        self._reader.wait(lambda: call.space is not None)
        if call.space is None:
            raise TritonModelException(_SERVER_GONE)
        blocks, reason = call.space
        if blocks is None:
            return reason
        for (index, array), (lent_id, offset, _) in zip(waiting, blocks):
            self._arena.write_array(offset, array)
            tensors[index] += (lent_id, 0, array.nbytes)
        return None

    # Reading of responses.

    def take(self, call: _Call) -> InferenceResponse | None:
        """Waits for the next response and returns it; returns None after the last one."""
        self._reader.wait(lambda: call.responses or call.is_last_there)
        if not call.responses:
            self._check_server()
            return None
        return self.opened(call, call.responses.popleft())

    def opened(self, call: _Call, frame: bytes | tuple[str, str]) -> InferenceResponse:
        """Decodes a response frame."""
        if type(frame) is tuple:
            return _failed(frame[1])
        text, loans, tensors, inline_offset = call_wire.decode_message(frame)
        if "message" in text:
            return _failed(text["message"], call.is_cancelled and text.get("code") == TritonError.CANCELLED.value)
        inline = bytearray(frame[inline_offset:])
        lent = [self._lend(call, *loan) for loan in loans]
        response = InferenceResponse.__new__(InferenceResponse)
        response._error = None
        response._parameters = json.loads(text.get("parameters") or "{}")
        response._outputs = [
            objects.tensor_from_wire(
                text["names"][name_index],
                datatype,
                shape,
                (inline if block == wire.INLINE else lent[block], offset, size),
            )
            for name_index, datatype, shape, block, offset, size in tensors
        ]
        return response

    def _lend(self, call: _Call, lent_id: int, flags: int, offset: int, size: int) -> LentBlock:
        self._lent[lent_id] = (call.execution_id, flags, offset, size)
        return self._arena.lend(lent_id, flags & wire.LENT_SHARED, offset, size, self._release)

    def acknowledge(self, call: _Call, count: int) -> int:
        """Acknowledges the read responses of a stream, several at a time. Returns the number of responses that are not acknowledged yet."""
        if count >= _TAKEN_STEP and not call.is_last_there:
            self._channel.send(call_wire.encode_credit(call.id, count))
            return 0
        return count

    def cancel(self, call: _Call) -> None:
        """Cancels the call. The server ends it and sends its last frame."""
        call.is_cancelled = True
        if not call.is_last_there and call.id in self._open:
            self._channel.send_whenever(call_wire.encode_cancel(call.id))

    def drop(self, call: _Call) -> None:
        """Cancels the call and discards its responses. May be called from any thread at any time."""
        if call.is_dropped:
            return
        call.is_dropped = True
        self.cancel(call)
        self._forget(call)

    def _forget(self, call: _Call) -> None:
        while call.responses:
            try:
                frame = call.responses.popleft()
            except IndexError:
                return
            if type(frame) is bytes and wire.HEADER.unpack_from(frame, 0)[1] == wire.CALL_RESPONSE:
                for loan in call_wire.decode_loans(frame):
                    self._release(loan[0])

    # Memory of responses.

    def _release(self, lent_id: int) -> None:
        """Records that the last view of a response's block was deleted. May be called from any thread at any time."""
        self._lent.pop(lent_id, None)
        if lent_id in self._pinned:
            self._unpinned.append(lent_id)
        elif self._channel.idle:
            self._channel.release(lent_id)
        else:
            self._released.append(lent_id)

    def loans_of(self, execution_id: int | None) -> list[Lent]:
        """Returns the lent blocks that may contain outputs of the execution: [(lent_id, flags, offset, size, None)]."""
        return [
            (lent_id, flags, offset, size, None)
            for lent_id, (owner, flags, offset, size) in list(self._lent.items())
            if owner == execution_id
        ]

    def pin(self, responses: list[wire.EncodedResponse]) -> None:
        """Keeps the blocks that contain outputs of these responses lent, so that they are released only with the RESULT frame."""
        self._pinned = frozenset(
            block
            for kind, _, outputs in responses
            if kind == "outputs"
            for _, _, _, block, _, _ in outputs
            if block in self._lent
        )

    def take_released(self) -> list[int]:
        """Returns the ids of blocks that are no longer used, including pinned ones. The caller must report them to the server."""
        released = self._unpinned[:]
        del self._unpinned[: len(released)]
        while self._released:
            try:
                released.append(self._released.popleft())
            except IndexError:
                break
        return released

    def settled(self) -> None:
        """Ends the effect of `pin`: later releases are reported separately."""
        self._pinned = ()
        while self._unpinned:
            self._released.append(self._unpinned.pop())
        self.flush()

    def flush(self) -> None:
        """Reports the blocks that are no longer used to the server."""
        released = []
        while self._released:
            try:
                released.append(self._released.popleft())
            except IndexError:
                break
        if released:
            self._channel.send(wire.encode_released(released))

    # Loading and unloading of models.

    def control(self, verb: int, text: dict[str, Any], files: list[bytes]) -> dict[str, Any]:
        """Sends a load, unload or readiness request. Returns the server's reply, a JSON object."""
        check_limit("%d files are given", len(files), wire.NAMES_MAX)
        text = json.dumps(text).encode("utf-8")
        check_limit("the configuration and the files' names have %d bytes", len(text), wire.TEXT_BYTES_MAX)
        frame_bytes = wire.HEADER_BYTES + call_wire.CONTROL_HEAD.size + len(text) + sum(map(len, files))
        check_limit("the configuration and the files have %d bytes", frame_bytes, wire.FRAME_BYTES_MAX)
        call = self._wait_and_begin(_Call(None, False))
        self._channel.send(call_wire.encode_control(call.id, verb, text, files))
        self._reader.wait(lambda: call.responses)
        if not call.responses:
            raise TritonModelException(_SERVER_GONE)
        return call_wire.decode_control_result(call.responses.popleft())


def _text_of_call(call: _Call, request: CallRequest) -> bytes:
    """Returns the JSON object of a CALL frame."""
    text = {
        "execution": call.execution_id,
        "model": request.model_name,
        "version": request.version,
        "id": request.request_id,
        "correlation": request.correlation if isinstance(request.correlation, str) else [str(request.correlation)],
        "flags": request.flags & 0xFFFFFFFF,
        "timeout": min(request.timeout_us, 2**53 - 1),
        "outputs": list(request.requested) or None,
        "parameters": request.parameters,
        "names": [tensor._name for tensor in request.inputs],
    }
    data = json.dumps(text).encode("utf-8")
    check_limit("the request's names and parameters have %d bytes", len(data), wire.TEXT_BYTES_MAX)
    return data


def _failed(message: str, is_cancelled: bool = False) -> InferenceResponse:
    # Returns the error response of the called model. As in Triton, the text is kept, but the code is kept only if this model has cancelled
    # the call.
    return InferenceResponse(
        error=TritonError(message, TritonError.CANCELLED if is_cancelled else TritonError.INTERNAL)
    )


def new_call(execution_id: int | None, is_stream: bool) -> _Call:
    """Returns a call that has no number yet."""
    return _Call(execution_id, is_stream)


class ResponseIterator:
    """Iterates once over the responses of a called model: any number from a decoupled model, one from another model."""

    __module__ = MODULE

    def __init__(self, calls: Calls, call: _Call) -> None:
        self._calls = calls
        self._call = call
        self._unacknowledged = 0

    def __del__(self) -> None:
        self._calls.drop(self._call)

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        """Waits for the next response.

        Raises StopIteration after the last one. In a coroutine, use `async for`, which does not block the event loop.
        """
        response = self._take()
        if response is None:
            raise StopIteration
        return response

    def __aiter__(self) -> ResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        """Awaits the next response. Raises StopAsyncIteration after the last one."""
        await self._calls.response_to(self._call)
        response = self._take()
        if response is None:
            raise StopAsyncIteration
        return response

    def _take(self) -> InferenceResponse | None:
        response = self._calls.take(self._call)
        if response is not None:
            self._unacknowledged = self._calls.acknowledge(self._call, self._unacknowledged + 1)
        return response

    def cancel(self) -> None:
        """Cancels the call. The called model can query this. If its execution is still queued, it is skipped."""
        self._calls.cancel(self._call)
