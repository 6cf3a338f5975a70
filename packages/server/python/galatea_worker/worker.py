"""A worker process. It loads a model and executes batches until the server ends it or closes the socket."""

from __future__ import annotations

import gc
import inspect
import json
import os
import threading
import time
from typing import TYPE_CHECKING

from . import arena as arena_module
from . import (
    batch_responses,
    current_worker,
    failures,
    process_title,
    wire,
)
from .channel import Channel
from .frame_reader import FrameReader, read_alone
from .metric_requests import MetricRequests
from .model_instance import ModelInstance
from .objects import TritonModelException, check_limit
from .user_model import UserModel

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
    from typing import Any

    from .awaited_calls import AwaitedCalls
    from .calls import Calls
    from .inference_request import InferenceRequest
    from .objects import InferenceResponse
    from .response_sender import Reply
    from .thread_pools import Pools


_now = time.perf_counter_ns
_SLOW_NS = 1_000_000


class Worker:
    """The state of one worker process."""

    def __init__(self, fd: int, arena_fd: int, pools: Pools, model_file: int | None = None) -> None:
        self.channel = Channel(fd)
        # Descriptor of the model's file in immutable memory; None if the file is read from disk.
        self.model_file = model_file
        self._pools = pools
        self._arena_fd = arena_fd
        self._arena = None
        self._waiting = []
        # Indexes of cancelled requests by execution id, according to the frames read so far.
        self._cancelled = {}
        self._model = None
        # The model after its initialization.
        self._instance = None
        # Id of the running or last execution; None before the first one.
        self._executing = None
        # Created at the model's first call to another model: the reader of the socket, the calls, and the pending request for memory.
        self._reader = None
        self._calls = None
        self._awaited_calls = None
        self._calls_max = 0
        self._metric_requests = None
        self._space = None
        # True while the main thread holds the channel's `reading`.
        self._reads_alone = True
        self._making_calls = threading.Lock()
        # Exactly one is used after the initialization: the service of a decoupled model, or the late responses of another model.
        self._decoupled = None
        self._late = None
        self._coroutines = None
        self._main = threading.get_ident()
        self._outputs = None
        self._inline_bytes_max = 0
        self._name = ""
        self.version_directory = ""
        self.backend_config = {}
        self._package_hint = ""

    def run(self) -> None:
        """Handles frames. Returns when the server closes the socket or requests the end."""
        self.channel.send(wire.frame(wire.HELLO, frame_id=os.getpid()))
        channel = self.channel
        while True:
            # Releases the previous frame, which may be large.
            frame = None
            if self._waiting:
                frame = self._waiting.pop(0)
            else:
                channel.idle = True
                channel.flush_released()
                frame = channel.receive() if self._reader is None else None
                if self._reader is not None:
                    frame = self._next_frame(frame)
                channel.idle = False
            if frame is None:
                return
            kind = wire.HEADER.unpack_from(frame, 0)[1]
            if kind == wire.EXECUTE:
                self._on_execute(frame)
            elif kind == wire.CANCEL:
                # This frame arrives after its execution has ended, so the record of the cancellation is no longer needed.
                self._cancelled.pop(wire.HEADER.unpack_from(frame, 0)[3], None)
            elif kind == wire.FINALIZE:
                self.finalize()
                return
            else:
                self._on_lifecycle(kind, json.loads(bytes(frame[wire.HEADER_BYTES :])))
                if self._decoupled is not None:
                    if self._decoupled.run():
                        self.finalize()
                    return

    # Reading of the socket. While no code of the model runs, only the main thread reads. This changes when the model first calls another
    # model.

    def _stop_reading(self) -> None:
        """Ends the main thread's reading. Called before code of the model runs."""
        if self._reads_alone:
            self._reads_alone = False
            self.channel.reading.release()
        if self._reader is not None:
            self._reader.hand_over()

    def _start_reading(self) -> None:
        """Resumes the main thread's reading. Called after code of the model has run."""
        if self._reader is None:
            self.channel.reading.acquire()
            self._reads_alone = True
            if self._reader is not None:
                self._stop_reading()

    def _next_frame(self, frame: memoryview | None) -> memoryview | None:
        """Returns the next frame for the main thread. `frame` is one that the main thread received while another thread made the model's
        first call."""
        if frame is not None:
            self._reader.hand_over(frame)
        self._stop_reading()
        self._reader.wait(lambda: self._waiting)
        return self._waiting.pop(0) if self._waiting else None

    def _dispatch(self, frame: memoryview) -> None:
        """Handles a frame in the thread that has read it. The caller must hold `changed`."""
        _, kind, _, frame_id, extra = wire.HEADER.unpack_from(frame, 0)
        if kind in wire.CALL_FRAMES:
            self.dispatch_call(frame, kind, frame_id)
        elif self._late is not None and self._late.takes(frame, kind, frame_id, extra):
            return
        elif kind == wire.SPACE:
            self._space = wire.decode_space(frame)
        else:
            self._waiting.append(memoryview(bytes(frame)))

    # Calls to other models.

    @property
    def may_call(self) -> bool:
        """True while the model is initialized."""
        return self._model is not None and self._model.is_up

    def dispatch_call(self, frame: memoryview, kind: int, call_id: int) -> None:
        """Handles a frame about a call or a metric of this process."""
        if kind == wire.METRIC_RESULT:
            self._metric_requests.responded(frame)
        elif self._calls is not None:
            self._calls.dispatch(frame, kind, call_id)

    def calls(self) -> Calls:
        """Returns the object that calls other models. From the first call on, one of the waiting threads reads the socket."""
        if self._calls is None:
            with self._making_calls:
                if self._calls is None:
                    self._calls = self._make_calls()
        return self._calls

    def _make_calls(self) -> Calls:
        from .calls import Calls

        rest = (self._arena, self._inline_bytes_max, self._calls_max)
        return Calls(
            self.channel, self._shared_reader(), *rest, lambda call: self.awaited_calls().wait_for_response(call)
        )

    def _shared_reader(self) -> FrameReader:
        """Returns the reader. From now on, one of the waiting threads reads for all threads.

        A thread that holds `reading` hands the reading over when it stops. The caller must hold `_making_calls`.
        """
        if self._decoupled is not None:
            return self._decoupled.reader
        if self._reader is None:
            self._reader = FrameReader(self.channel, self._dispatch, is_reading=True)
            if self.channel.reading.acquire(False):
                self.channel.reading.release()
                self._reader.hand_over()
        return self._reader

    def metric_requests(self) -> MetricRequests:
        """Returns the object that sends requests about metrics to the server."""
        if self._metric_requests is None:
            with self._making_calls:
                if self._metric_requests is None:
                    self._metric_requests = MetricRequests(self.channel, self._arena, self._wait_for)
        return self._metric_requests

    def _wait_for(self, is_there: Callable[[], object]) -> None:
        """Waits until `is_there()` is true or the server has closed the socket.

        Reads the socket in the calling thread unless another thread already reads. Thus a model that requests only metrics needs no
        FrameReader.
        """
        if self._reader is None and self._decoupled is None:
            read_alone(self.channel, lambda: self._reader, self._dispatch, is_there)
        if not is_there():
            with self._making_calls:
                reader = self._shared_reader()
            reader.wait(is_there)

    def awaited_calls(self) -> AwaitedCalls:
        """Returns the object that calls other models for coroutines."""
        calls = self.calls()
        with self._making_calls:
            if self._awaited_calls is None:
                from .awaited_calls import AwaitedCalls

                self._awaited_calls = AwaitedCalls(calls, self.channel, self._reader or self._decoupled.reader)
            return self._awaited_calls

    def calling_execution(self) -> int | None:
        """Returns the id of the execution to which the calling code belongs.

        Threads of a model that is not decoupled belong to the running execution.
        """
        if self._decoupled is not None:
            return self._decoupled.calling_execution()
        of_coroutine = None if self._coroutines is None else self._coroutines.execution()
        if of_coroutine is not None:
            return of_coroutine
        return self._executing if self._late is None or threading.get_ident() == self._main else None

    # Lifecycle of the model.

    def _on_lifecycle(self, kind: int, body: memoryview) -> None:
        step, reply_kind = {
            wire.LOAD: (self._load, wire.LOADED),
            wire.COMPLETE: (self._complete, wire.COMPLETED),
            wire.INITIALIZE: (self._initialize, wire.INITIALIZED),
        }[kind]
        self._stop_reading()
        try:
            # Inside `try`, because a model may have set values in its configuration that JSON cannot represent.
            reply = json.dumps(step(body), allow_nan=False)
        except BaseException as error:  # noqa: BLE001 - any exception of the model fails the load
            failures.explain(error, self._package_hint)
            reply_kind = wire.FAILED
            reply = json.dumps({"message": failures.describe(error), "outOfMemory": failures.is_out_of_memory(error)})
        self._start_reading()
        self.channel.send(wire.frame(reply_kind, reply.encode("utf-8")))

    def _load(self, body: dict[str, Any]) -> dict[str, Any]:
        process_title.show(body["title"])
        self._arena = arena_module.Arena(self._arena_fd, body["arenaBytes"])
        os.close(self._arena_fd)
        self._inline_bytes_max = body["inlineBytesMax"]
        self._calls_max = body["callsMax"]
        self.version_directory = body["versionDirectory"]
        self.backend_config = body["backendConfig"]
        self._package_hint = body["packageHint"]
        self._model = UserModel(body)
        self._pools.adjust()
        return {"completes": self._model.completes}

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"config": self._model.completed(body["config"])}

    def _initialize(self, body: dict[str, Any]) -> dict[str, Any]:
        self._model.check(body["path"])
        self._name = body["args"]["model_instance_name"]
        execute = self._model.initialize(body["args"])
        names = (body["inputs"], body["outputs"])
        self._instance = ModelInstance(self._name, execute, self.channel, self._arena, self._inline_bytes_max, names)
        self._outputs = self._instance.outputs_with(self._request_space)
        if body["decoupled"]:
            from .decoupled import DecoupledService

            reader = self._reader or FrameReader(self.channel, self._dispatch)
            self._decoupled = DecoupledService(self._instance, reader, self.dispatch_call, body["unreadResponsesMax"])
        # Objects created during the load exist as long as the model. Excluding them from garbage collection avoids writing to their memory
        # pages.
        gc.collect()
        gc.freeze()
        return {"imported": self._model.imported()}

    @property
    def instance_name(self) -> str:
        """Returns the instance's name for messages."""
        return self._name

    def finalize(self) -> None:
        """Ends the model by calling its `finalize`."""
        self._stop_reading()
        if self._model is not None:
            self._model.finalize()
        self.channel.send(wire.frame(wire.FINALIZED))

    # Execution of batches.

    def _on_execute(self, frame: memoryview) -> None:
        begin_ns = _now()
        count, execution_id, next_is_near = wire.HEADER.unpack_from(frame, 0)[2:]
        if self._cancelled and len(self._cancelled.get(execution_id, ())) == count:
            self._skip(execution_id, frame)
            return
        self.channel.next_is_near = next_is_near != 0
        requests, spaces, lent = self._instance.open_requests(execution_id, frame)
        frame = None
        opened = _now()
        self._executing = execution_id
        if self._reader is None:
            self._reads_alone = False
            self.channel.reading.release()
        if self._reader is not None:
            self._stop_reading()
        responses, data, late = None, None, ()
        status = wire.STATUS_BATCH_FAILED
        try:
            responses, late = self._call(requests)
        except BaseException as error:  # noqa: BLE001 - as in Triton, SystemExit fails the batch and does not end the process
            message = failures.describe(error)
            if failures.is_out_of_memory(error):
                status = wire.STATUS_BATCH_OUT_OF_MEMORY
            error.__traceback__ = None
            error = None
        finally:
            if self._reader is None:
                self.channel.reading.acquire()
                self._reads_alone = True
                if self._reader is not None:
                    self._stop_reading()
        executed = _now()
        released = []
        if responses is not None:
            try:
                calls = self._calls
                if calls is not None:
                    lent = lent + calls.loans_of(execution_id)
                encoded = self._outputs.encode(execution_id, requests, responses, spaces, lent)
                if calls is not None:
                    calls.pin(encoded)
                # The model's objects are deleted first, so that the RESULT frame also releases their blocks.
                responses = requests = lent = None
                released = self.channel.take_released()
                if calls is not None:
                    released = released + calls.take_released()
                final_records = self._outputs.settled(execution_id, encoded, spaces, released)
                durations = (opened - begin_ns, executed - opened, _now() - executed)
                data = wire.encode_result(execution_id, released, final_records, durations)
                what = "the responses' parameters and small tensors have %d bytes"
                check_limit(what, len(data), wire.FRAME_BYTES_MAX)
            except BaseException as error:  # noqa: BLE001 - converting the model's objects to bytes may raise anything
                data = None
                message = failures.describe(error)
                if failures.is_out_of_memory(error):
                    status = wire.STATUS_BATCH_OUT_OF_MEMORY
                error.__traceback__ = None
        if data is None:
            batch_responses.close(late, message)
            responses = requests = lent = late = None
            released = released + self.channel.take_released()
            durations = (opened - begin_ns, executed - opened, 0)
            data = wire.encode_batch_failure(execution_id, released, message, durations, status)
        self.channel.send(data)
        if self._calls is not None:
            self._calls.settled()
        if late:
            self._respond_later(execution_id, late)
            late = None
        if executed - opened > _SLOW_NS:
            self._find_cancelled()

    def _respond_later(self, execution_id: int, replies: Sequence[Reply]) -> None:
        """Registers the late responses of an execution, after its RESULT frame was sent."""
        if self._late is None:
            from .late_responses import LateResponses

            with self._making_calls:
                self._late = LateResponses(self._instance, self._shared_reader())
            self._stop_reading()
        self._find_cancelled()
        self._late.take_over(replies, self._cancelled.get(execution_id, ()))

    def _skip(self, execution_id: int, frame: memoryview) -> None:
        """Sends the result of a cancelled execution, whose lent blocks were not used."""
        del self._cancelled[execution_id]
        released = [lent_id for lent_id, _, _, _ in wire.decode_execute(frame)[0]] + self.channel.take_released()
        self.channel.send(wire.encode_batch_failure(execution_id, released, "cancelled", (0, 0, 0)))

    def _find_cancelled(self) -> None:
        """Records which requests of this execution and of later ones were cancelled."""
        if self._reader is None:
            arrived = self.channel.look()
        else:
            self._reader.poll()
            arrived = []
        headers = [wire.HEADER.unpack_from(frame, 0) for frame in list(self._waiting)] + arrived
        for _, kind, _, execution_id, request_index in headers:
            if kind == wire.CANCEL:
                self._cancelled.setdefault(execution_id, set()).add(request_index)

    def is_request_cancelled(self, execution_id: int, request_index: int) -> bool:
        """Returns whether a request was cancelled. May be called from any thread.

        While no code of the model runs, the socket is not polled.
        """
        if self._decoupled is not None:
            return self._decoupled.is_request_cancelled(execution_id, request_index)
        if self._reader is not None:
            self._find_cancelled()
        elif self.channel.reading.acquire(False):
            try:
                self._find_cancelled()
            finally:
                self.channel.reading.release()
            if self._reader is not None:
                self._reader.hand_over()
        is_open = self._late is not None and self._late.is_request_cancelled((execution_id, request_index))
        return is_open or request_index in self._cancelled.get(execution_id, ())

    def _call(self, requests: list[InferenceRequest]) -> tuple[list[InferenceResponse | None], Sequence[Reply]]:
        try:
            # The list and its elements belong to the model from here on.
            result = self._instance.execute(requests[:])
            if type(result) is not list and inspect.iscoroutine(result):
                result = self._result_of(result)
            return batch_responses.returned(requests, result)
        except BaseException as error:  # noqa: BLE001 - responses that the model has already sent remain valid
            return batch_responses.responses_before_error(requests, error, self._name, self.channel)

    def _result_of(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        if self._coroutines is None:
            from .coroutine_loop import CoroutineLoop

            self._coroutines = CoroutineLoop()
        return self._coroutines.result_of(coroutine, self._executing)

    def _request_space(self, execution_id: int, sizes: list[int]) -> list[wire.Block]:
        """Returns blocks for outputs of these sizes: [(lent_id, offset, size)]. Other frames that arrive in the meantime are kept for
        later."""
        self._space = None
        self.channel.send(wire.encode_space_request(execution_id, sizes))
        while self._reader is None and self._space is None:
            frame = self.channel.receive()
            if frame is None:
                os._exit(0)
            if self._reader is None:
                self._dispatch(frame)
            else:
                self._reader.hand_over(frame)
        if self._space is None:
            self._stop_reading()
            self._reader.wait(lambda: self._space is not None)
            if self._space is None:
                os._exit(0)
        blocks, reason = self._space
        if blocks is None:
            raise TritonModelException(reason)
        return blocks


def start(fd: int, arena_fd: int, pools: Pools, model_file: int | None) -> None:
    """Runs the worker of this process. Returns when the worker has ended."""
    worker = Worker(fd, arena_fd, pools, model_file)
    current_worker.become(worker)
    worker.run()
