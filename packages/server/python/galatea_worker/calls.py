"""The calls of this process's model to other models of its namespace.

Nothing here is created or imported before the first call.
"""

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
# Number of read responses after which the server gets credits: half of its limit; one message for each would cost
# more.
_TAKEN_STEP = 8
_GONE = "The server is gone."


class _Call:
    """One call, from its first frame until its last response has been read."""

    __slots__ = (
        "id",
        "execution_id",
        "answers",
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
        # Frames that were not decoded yet.
        self.answers = collections.deque()
        self.is_last_there = False
        self.is_dropped = False
        # True if the calling model cancelled it.
        self.is_cancelled = False
        self.is_stream = is_stream
        self.is_sent = False
        # The response to the request for space.
        self.space = None
        # Callback for a new response, of calls that a coroutine awaits; called by the thread that reads the socket.
        self.done = None


class Calls:
    """The calls of this process.

    `reader` decides which thread reads the socket. `limit` is the largest number of concurrent calls. Coroutines await `response_to(call)`
    until `take` returns without blocking: a response has arrived, or the call's end.
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
        # Half of the limit is for calls that wait for a response, half for streams with unread responses.
        self._most = limit // 2
        self._waited_count = 0
        self._stream_count = 0
        # Callbacks for a free slot of a waiting call, one for each; each returns whether its caller still waits.
        self.vacancies = collections.deque()
        self._open = {}
        self._last_id = 0
        # Lent blocks of responses that this process uses: [execution_id, flags, offset, size] by id.
        self._lent = {}
        # Those of them that contain outputs of the current response, and which of these are unused by now.
        self._pinned = ()
        self._unpinned = []
        self._released = collections.deque()

    # Incoming frames.

    def dispatch(self, frame: memoryview, kind: int, call_id: int) -> None:
        """Handles a frame about a call; the caller holds `changed` of the reader."""
        call = self._open.get(call_id)
        if call is None:
            return
        if kind == wire.CALL_SPACE:
            call.space = wire.decode_space(frame)
            if call.space[0] is None:
                self._close(call)
        else:
            call.answers.append(bytes(frame))
            if kind == wire.CONTROLLED or wire.HEADER.unpack_from(frame, 0)[4] & call_wire.LAST:
                call.is_last_there = True
                self._close(call)
            if call.is_dropped:
                self._forget(call)
            elif call.done is not None:
                call.done()

    def _close(self, call: _Call) -> None:
        """Ends a call after the server's last frame: its number is free. The caller holds `changed`."""
        del self._open[call.id]
        if call.is_stream:
            self._stream_count -= 1
            return
        self._waited_count -= 1
        self._tell_vacancy()

    def _tell_vacancy(self) -> None:
        while self.vacancies:
            if self.vacancies.popleft()():
                return

    def waits_no_more(self, tell: Callable[[], bool]) -> None:
        """Withdraws a callback; a slot that it was already given passes to the next one. The caller holds `changed`."""
        try:
            self.vacancies.remove(tell)
        except ValueError:
            self._tell_vacancy()

    # Outgoing calls.

    def begin(self, call: _Call) -> bool:
        """Assigns the call a number; returns False when it must wait for the end of another.

        The caller holds `changed`.
        """
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

    def _begin_in_turn(self, call: _Call) -> _Call:
        """Assigns the call a number, and waits if necessary."""
        while True:
            with self._reader.changed:
                if self.begin(call):
                    return call
            self._reader.wait(lambda: self._waited_count < self._most)
            self._check_server()

    def _check_server(self) -> None:
        if self._reader.is_over:
            raise TritonModelException(_GONE)

    def open(self, request: CallRequest, execution_id: int | None, is_stream: bool) -> _Call:
        """Sends a request.

        Its responses arrive in the returned call, or are already there when it could not be sent.
        """
        return self.send(self._begin_in_turn(_Call(execution_id, is_stream)), request)

    def send(self, call: _Call, request: CallRequest) -> _Call:
        """Sends a request of a call that has a number."""
        try:
            return self._send(call, request)
        except BaseException:
            if not call.is_sent:
                self._take_back(call)
            raise

    def _take_back(self, call: _Call) -> None:
        """Withdraws a call that was not sent; the server has received at most a request for space."""
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
            tensors.append(self._placed(index, tensor, waiting))
        if waiting:
            reason = self._fill(call, tensors, waiting)
            if reason is not None:
                call.answers.append(("error", reason))
                call.is_last_there = True
                return call
        data = call_wire.encode_message(wire.CALL, call.id, call_wire.STREAMED if call.is_stream else 0, text, tensors)
        check_limit("the request's parameters and small tensors have %d bytes", len(data), wire.FRAME_BYTES_MAX)
        call.is_sent = True
        self._channel.send(data)
        return call

    def _placed(self, index: int, tensor: Tensor, waiting: list[tuple[int, np.ndarray]]) -> tuple[Any, ...]:
        """Returns a tensor in wire form: small ones inline, unwritable ones at their location, others in space of the call."""
        array = tensor._array
        if array is None or tensor._datatype == datatypes.BYTES:
            block = tensor._buffer
            array = np.ndarray((tensor._size,), np.uint8, block, tensor._offset)
            if (
                type(block) is LentBlock
                and tensor._size > self._inline_bytes_max
                and (block.is_shared or not block.is_viewed)
            ):
                # From now on the called model reads it too: the calling model gets a copy to write to.
                block.is_shared = True
                return (index, tensor._datatype, tensor._shape, block.lent_id, tensor._offset, tensor._size)
        if array.nbytes <= self._inline_bytes_max:
            return (index, tensor._datatype, tensor._shape, wire.INLINE, 0, array.tobytes())
        waiting.append((index, array))
        return (index, tensor._datatype, tensor._shape)

    def _fill(self, call: _Call, tensors: list[tuple[Any, ...]], waiting: list[tuple[int, np.ndarray]]) -> str | None:
        """Requests space and copies the tensors there; returns the reason when there is none."""
        self._channel.send(call_wire.encode_space_request(call.id, [array.nbytes for _, array in waiting]))
        self._reader.wait(lambda: call.space is not None)
        if call.space is None:
            raise TritonModelException(_GONE)
        blocks, reason = call.space
        if blocks is None:
            return reason
        for (index, array), (lent_id, offset, _) in zip(waiting, blocks):
            self._arena.write_array(offset, array)
            tensors[index] += (lent_id, 0, array.nbytes)
        return None

    # Responses.

    def take(self, call: _Call) -> InferenceResponse | None:
        """Waits for and returns the next response; None after the last."""
        self._reader.wait(lambda: call.answers or call.is_last_there)
        if not call.answers:
            self._check_server()
            return None
        return self.opened(call, call.answers.popleft())

    def opened(self, call: _Call, frame: bytes | tuple[str, str]) -> InferenceResponse:
        """Decodes a response."""
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
            objects.tensor_of_wire(
                text["names"][name_index],
                datatype,
                shape,
                (inline if place == wire.INLINE else lent[place], offset, size),
            )
            for name_index, datatype, shape, place, offset, size in tensors
        ]
        return response

    def _lend(self, call: _Call, lent_id: int, flags: int, offset: int, size: int) -> LentBlock:
        self._lent[lent_id] = (call.execution_id, flags, offset, size)
        return self._arena.lend(lent_id, flags & wire.LENT_SHARED, offset, size, self._release)

    def taken(self, call: _Call, count: int) -> int:
        """Counts read responses of a stream, and acknowledges them in batches; returns the unacknowledged number."""
        if count >= _TAKEN_STEP and not call.is_last_there:
            self._channel.send(call_wire.encode_taken(call.id, count))
            return 0
        return count

    def cancel(self, call: _Call) -> None:
        """Cancels the call: the server ends it, and sends its end."""
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
        while call.answers:
            try:
                frame = call.answers.popleft()
            except IndexError:
                return
            if type(frame) is bytes and wire.HEADER.unpack_from(frame, 0)[1] == wire.CALL_ANSWER:
                for loan in call_wire.decode_loans(frame):
                    self._release(loan[0])

    # Blocks of responses.

    def _release(self, lent_id: int) -> None:
        """Records that the last view of a response's block is gone. May be called from any thread at any time."""
        self._lent.pop(lent_id, None)
        if lent_id in self._pinned:
            self._unpinned.append(lent_id)
        elif self._channel.idle:
            self._channel.release(lent_id)
        else:
            self._released.append(lent_id)

    def loans_of(self, execution_id: int | None) -> list[Lent]:
        """Returns the blocks that may contain outputs of the execution, [(lent_id, flags, offset, size, None)]."""
        return [
            (lent_id, flags, offset, size, None)
            for lent_id, (owner, flags, offset, size) in list(self._lent.items())
            if owner == execution_id
        ]

    def pin(self, answers: list[wire.Answer]) -> None:
        """Keeps the blocks of calls that contain outputs of these responses, so that only the result releases them."""
        self._pinned = frozenset(
            place
            for kind, _, outputs in answers
            if kind == "outputs"
            for _, _, _, place, _, _ in outputs
            if place in self._lent
        )

    def take_released(self) -> list[int]:
        """Returns the unused blocks, including kept ones; the caller sends them to the server."""
        released = self._unpinned[:]
        del self._unpinned[: len(released)]
        while self._released:
            try:
                released.append(self._released.popleft())
            except IndexError:
                break
        return released

    def settled(self) -> None:
        """Ends the keeping of blocks: later releases are sent separately."""
        self._pinned = ()
        while self._unpinned:
            self._released.append(self._unpinned.pop())
        self.flush()

    def flush(self) -> None:
        """Sends the unused blocks to the server."""
        released = []
        while self._released:
            try:
                released.append(self._released.popleft())
            except IndexError:
                break
        if released:
            self._channel.send(wire.encode_released(released))

    # Model control.

    def control(self, verb: int, text: dict[str, Any], files: list[bytes]) -> dict[str, Any]:
        """Sends a load, unload or readiness request; returns the server's response, an object."""
        check_limit("%d files are given", len(files), wire.NAMES_MAX)
        text = json.dumps(text).encode("utf-8")
        check_limit("the configuration and the files' names have %d bytes", len(text), wire.TEXT_BYTES_MAX)
        frame_bytes = wire.HEADER_BYTES + call_wire.CONTROL_HEAD.size + len(text) + sum(map(len, files))
        check_limit("the configuration and the files have %d bytes", frame_bytes, wire.FRAME_BYTES_MAX)
        call = self._begin_in_turn(_Call(None, False))
        self._channel.send(call_wire.encode_control(call.id, verb, text, files))
        self._reader.wait(lambda: call.answers)
        if not call.answers:
            raise TritonModelException(_GONE)
        return call_wire.decode_controlled(call.answers.popleft())


def _text_of_call(call: _Call, request: CallRequest) -> bytes:
    """Returns the JSON of a CALL."""
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
    # Returns the error response of another model. Triton keeps its text, and its code only for a call that this
    # model has cancelled.
    return InferenceResponse(
        error=TritonError(message, TritonError.CANCELLED if is_cancelled else TritonError.INTERNAL)
    )


def new_call(execution_id: int | None, is_stream: bool) -> _Call:
    """Returns a call without a number."""
    return _Call(execution_id, is_stream)


class ResponseIterator:
    """The responses of a decoupled model, or the one of another, in order, once."""

    __module__ = MODULE

    def __init__(self, calls: Calls, call: _Call) -> None:
        self._calls = calls
        self._call = call
        self._untold = 0

    def __del__(self) -> None:
        self._calls.drop(self._call)

    def __iter__(self) -> ResponseIterator:
        return self

    def __next__(self) -> InferenceResponse:
        """Waits for the next response. Raises StopIteration after the last. In a coroutine `async for` does not block the event loop."""
        response = self._take()
        if response is None:
            raise StopIteration
        return response

    def __aiter__(self) -> ResponseIterator:
        return self

    async def __anext__(self) -> InferenceResponse:
        """Awaits the next response. Raises StopAsyncIteration after the last."""
        await self._calls.response_to(self._call)
        response = self._take()
        if response is None:
            raise StopAsyncIteration
        return response

    def _take(self) -> InferenceResponse | None:
        response = self._calls.take(self._call)
        if response is not None:
            self._untold = self._calls.taken(self._call, self._untold + 1)
        return response

    def cancel(self) -> None:
        """Cancels the call: the called model can query that, and a queued execution is skipped."""
        self._calls.cancel(self._call)
