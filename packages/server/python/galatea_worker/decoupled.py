"""Runs a decoupled model.

Such a model sends any number of responses to each request, from any thread, even after `execute` has returned."""

from __future__ import annotations

import collections
import inspect
import threading
import time
from typing import TYPE_CHECKING

from . import failures, wire
from .objects import TritonModelException
from .response_frames import ResponseFrames
from .response_sender import FLAG_FINAL, SEND, InferenceResponseSender, check_sent
from .signatures import checked

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from .frame_reader import FrameReader
    from .model_instance import ModelInstance
    from .objects import InferenceResponse


_now = time.perf_counter_ns
_CLOSED = "Unable to send response. Response sender has been closed."
_DROPPED = "The response sender went away without having sent the final flag."


class _State:
    """The state of the responses to one request."""

    __slots__ = ("execution_id", "request_index", "requested", "credit", "is_closed", "is_cancelled")

    def __init__(self, execution_id: int, request_index: int, requested: Sequence[str], credit: int) -> None:
        self.execution_id = execution_id
        self.request_index = request_index
        self.requested = requested
        # Number of responses that may be sent before the client has read earlier ones.
        self.credit = credit
        # True when no further response follows.
        self.is_closed = False
        # True when the request was cancelled.
        self.is_cancelled = False


class PendingResponses:
    """The right to send responses to one request.

    Only the request and its response senders refer to this object. When it is deleted, no response can be sent any more."""

    __slots__ = ("_state", "_service")

    def __init__(self, state: _State, service: DecoupledService) -> None:
        self._state = state
        self._service = service

    def __del__(self) -> None:
        # Python may run this in any thread at any time.
        if not self._state.is_closed:
            self._service.dropped(self._state)

    def send(self, response: InferenceResponse | None, is_final: bool) -> None:
        """Sends a response, or only the final flag if `response` is None. Waits until the client has read earlier responses."""
        self._service.send(self._state, response, is_final)

    def is_cancelled(self) -> bool:
        """Returns whether the request was cancelled."""
        return self._service.is_state_cancelled(self._state)

    def make_sender(self) -> DecoupledResponseSender:
        """Returns a new response sender."""
        return DecoupledResponseSender(self)


class DecoupledResponseSender(InferenceResponseSender):
    """Sends any number of responses of a decoupled model, from any thread, until the final flag."""

    __slots__ = ("_responses",)

    def __init__(self, responses: PendingResponses) -> None:
        self._responses = responses

    @checked(SEND)
    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Sends the response in its current state. Waits until the client has read earlier responses."""
        check_sent(response, flags)
        self._responses.send(response, flags == FLAG_FINAL)

    def is_cancelled(self) -> bool:
        """Returns whether the request was cancelled."""
        return self._responses.is_cancelled()


class DecoupledService:
    """Replaces the worker's main loop after a decoupled model was initialized.

    `dispatch_call(frame, kind, call_id)` handles frames about the model's calls and metrics. It is called with the reader's `changed` held.
    """

    def __init__(
        self,
        instance: ModelInstance,
        reader: FrameReader,
        dispatch_call: Callable[[memoryview, int, int], None],
        unread_responses_max: int,
    ) -> None:
        self._instance = instance
        self._channel = instance.channel
        self._dispatch_call = dispatch_call
        self.reader = self._reader = reader
        self._frames = ResponseFrames(instance, reader)
        self._unread_max = unread_responses_max
        # Frames for the main thread, in order.
        self._waiting = collections.deque()
        # Indexes of cancelled requests, by the id of an execution that has not started.
        self._not_started = {}
        # States of responses by execution id and request index.
        self._open = {}
        # Time spent on encoding responses of the running `execute`, in nanoseconds.
        self._output_ns = 0
        # The thread that calls `execute`, and the current execution.
        self._main = threading.get_ident()
        self._executing = None
        self._coroutines = None
        reader.redirect(self._dispatch)

    def run(self) -> bool:
        """Handles frames. Returns True if the server requests the end, False if the server has closed the socket."""
        # Released blocks are reported at once, because no RESULT frame that could report them follows.
        self._channel.idle = True
        self._channel.flush_released()
        while True:
            self._reader.wait(lambda: self._waiting)
            if not self._waiting:
                return False
            frame = self._waiting.popleft()
            if wire.HEADER.unpack_from(frame, 0)[1] == wire.FINALIZE:
                return True
            self._on_execute(frame)

    def _dispatch(self, frame: memoryview) -> None:
        _, kind, count, frame_id, extra = wire.HEADER.unpack_from(frame, 0)
        if kind in wire.CALL_FRAMES:
            self._dispatch_call(frame, kind, frame_id)
        elif kind == wire.CREDIT:
            state = self._open.get((frame_id, extra))
            if state is not None:
                state.credit += count
        elif kind == wire.SPACE:
            self._frames.granted(frame)
        elif kind == wire.CANCEL:
            state = self._open.get((frame_id, extra))
            if state is not None:
                state.is_cancelled = True
            elif frame_id in self._not_started:
                self._not_started[frame_id].add(extra)
        else:
            if kind == wire.EXECUTE:
                self._not_started[frame_id] = set()
            self._waiting.append(memoryview(bytes(frame)))

    def _on_execute(self, frame: memoryview) -> None:
        began = _now()
        count, execution_id = wire.HEADER.unpack_from(frame, 0)[2:4]
        self._reader.poll()
        with self._reader.changed:
            cancelled = self._not_started.pop(execution_id)
            if len(cancelled) == count:
                self._skip(execution_id, frame)
                return
            requests = self._instance.open_requests(execution_id, frame)[0]
            frame = None
            for request_index, request in enumerate(requests):
                state = _State(execution_id, request_index, request._requested, self._unread_max)
                state.is_cancelled = request_index in cancelled
                self._open[execution_id, request_index] = state
                request._responses = PendingResponses(state, self)
        opened = _now()
        self._output_ns = 0
        message = None
        status = wire.STATUS_BATCH_FAILED
        try:
            # The list and its elements belong to the model from here on.
            self._executing = execution_id
            result = self._instance.execute(requests[:])
            if inspect.iscoroutine(result):
                self._start(result, execution_id, [request.request_id() for request in requests])
            else:
                self._check(result)
        except BaseException as error:  # noqa: BLE001 - as in Triton, SystemExit fails the batch and does not end the process
            message = failures.describe(error)
            if failures.is_out_of_memory(error):
                status = wire.STATUS_BATCH_OUT_OF_MEMORY
            error.__traceback__ = None
            with self._reader.changed:
                # The result of a failed batch ends all open responses.
                for request_index in range(count):
                    self._close(self._open.get((execution_id, request_index)))
        self._executing = None
        request = requests = result = None
        ran_ns = _now() - opened
        # Limited, because threads of the model may have encoded responses in parallel.
        output_ns = min(self._output_ns, ran_ns)
        durations = (opened - began, ran_ns - output_ns, output_ns)
        if message is None:
            self._channel.send(wire.encode_result(execution_id, (), (), durations))
        else:
            self._channel.send(wire.encode_batch_failure(execution_id, (), message, durations, status))

    def _check(self, result: Any) -> None:
        if result is not None:
            raise failures.ModelError(
                "Python model '%s' is using the decoupled mode and the execute function must return None."
                % self._instance.name
            )

    def _skip(self, execution_id: int, frame: memoryview) -> None:
        """Sends the result of a cancelled execution, whose lent blocks were not used."""
        released = [lent_id for lent_id, _, _, _ in wire.decode_execute(frame)[0]]
        self._channel.send(wire.encode_batch_failure(execution_id, released, "cancelled", (0, 0, 0)))

    def _close(self, state: _State | None) -> None:
        if state is not None and not state.is_closed:
            state.is_closed = True
            self._open.pop((state.execution_id, state.request_index), None)
            self._reader.changed.notify_all()

    # Sending of responses.

    def send(self, state: _State, response: InferenceResponse | None, is_final: bool) -> None:
        """Sends a response, or only the final flag. Waits until the client has read earlier responses."""
        frame = None
        if response is not None and self._takes_credit(state):
            began = _now()
            try:
                frame = self._frames.frame(
                    (state.execution_id, state.request_index), state.requested, response, is_final
                )
                if state.execution_id == self._executing:
                    self._output_ns += _now() - began
            except BaseException:
                with self._reader.changed:
                    state.credit += 1
                raise
        elif is_final:
            frame = wire.encode_response(state.execution_id, state.request_index, True, None, 0)
        with self._reader.changed:
            if state.is_closed:
                raise TritonModelException(_CLOSED)
            if is_final:
                self._close(state)
            if frame is not None:
                self._channel.send(frame)

    def _takes_credit(self, state: _State) -> bool:
        """Uses one credit for a response. Returns False if the request was cancelled; the response is then dropped."""
        while True:
            with self._reader.changed:
                if state.is_closed:
                    raise TritonModelException(_CLOSED)
                if state.is_cancelled:
                    return False
                if state.credit > 0:
                    state.credit -= 1
                    return True
                if self._reader.is_over:
                    raise TritonModelException("Unable to send response. The server is gone.")
            self._reader.wait(lambda: state.credit > 0 or state.is_closed or state.is_cancelled)

    def dropped(self, state: _State) -> None:
        """Reports that no final flag can be sent any more, because the senders were deleted. Never waits for a lock."""
        state.is_closed = True
        self._open.pop((state.execution_id, state.request_index), None)
        error = ("error", 1, _DROPPED)
        self._channel.send_whenever(wire.encode_response(state.execution_id, state.request_index, True, error, 0))

    def calling_execution(self) -> int | None:
        """Returns the id of the execution to which the calling code belongs; None for a thread that the model has started."""
        if threading.get_ident() == self._main:
            return self._executing
        return None if self._coroutines is None else self._coroutines.execution()

    def is_state_cancelled(self, state: _State) -> bool:
        """Returns whether the request was cancelled."""
        self._reader.poll()
        return state.is_cancelled

    def is_request_cancelled(self, execution_id: int, request_index: int) -> bool:
        """Returns whether the request with this index in the execution was cancelled."""
        self._reader.poll()
        state = self._open.get((execution_id, request_index))
        return state is not None and state.is_cancelled

    # Running of coroutines.

    def _start(self, coroutine: Coroutine[Any, Any, Any], execution_id: int, request_ids: list[str]) -> None:
        """Runs an asynchronous `execute`. The instance can run the next execution in the meantime."""
        if self._coroutines is None:
            from .coroutine_loop import CoroutineLoop

            self._coroutines = CoroutineLoop()

        def done(result: Any, error: BaseException | None) -> None:
            try:
                if error is not None:
                    raise error
                self._check(result)
            except BaseException as raised:  # noqa: BLE001 - any exception ends the open responses with an error
                message = failures.failed_message(self._instance.name, raised)
                raised.__traceback__ = None
                failures.report(self._channel, message, request_ids)
                self._fail(execution_id, len(request_ids), message)

        self._coroutines.start(coroutine, execution_id, done)

    def _fail(self, execution_id: int, count: int, message: str) -> None:
        """Ends the open responses of an execution with an error."""
        for request_index in range(count):
            with self._reader.changed:
                state = self._open.get((execution_id, request_index))
                if state is None:
                    continue
                self._close(state)
                self._channel.send(wire.encode_response(execution_id, request_index, True, ("error", 1, message), 0))
