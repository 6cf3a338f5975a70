"""Calls to other models that coroutines await.

No thread waits for the responses: the coroutine's event loop polls the socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from .calls import ResponseIterator, new_call

if TYPE_CHECKING:
    from collections.abc import Callable

    from .calls import Calls, _Call
    from .channel import Channel
    from .frame_reader import FrameReader
    from .objects import CallRequest, InferenceResponse


class AwaitedCalls:
    """The pending calls of coroutines in this process, by event loop."""

    def __init__(self, calls: Calls, channel: Channel, reader: FrameReader) -> None:
        self._calls = calls
        self._fd = channel.fileno()
        self._reader = reader
        self._counts = {}
        self._tasks = set()

    def begin(
        self, loop: asyncio.AbstractEventLoop, request: CallRequest, execution_id: int | None, is_stream: bool
    ) -> asyncio.Task[InferenceResponse | ResponseIterator]:
        """Starts a call. The call runs even if its task is not awaited."""
        task = loop.create_task(self._exec(request, execution_id, is_stream))
        # A reference is kept, because the event loop itself holds no reference to a waiting task.
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _exec(
        self, request: CallRequest, execution_id: int | None, is_stream: bool
    ) -> InferenceResponse | ResponseIterator:
        """Returns the response.

        For a decoupled model, returns an iterator over the responses after the first one has arrived, as in Triton.
        """
        loop = asyncio.get_running_loop()
        call = new_call(execution_id, is_stream)
        self._enter(loop)
        try:
            await self._begin(call, loop)
            self._calls.send(call, request)
            try:
                await self._wait_for_response(call, loop)
            except BaseException:
                self._calls.drop(call)
                raise
            return ResponseIterator(self._calls, call) if is_stream else self._calls.take(call)
        finally:
            self._leave(loop)

    async def _begin(self, call: _Call, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._reader.changed:
                if self._calls.begin(call):
                    return
                vacant, notify = _signal(loop)
                self._calls.vacancies.append(notify)
            try:
                await vacant
            except BaseException:
                with self._reader.changed:
                    self._calls.remove_vacancy_callback(notify)
                raise

    async def wait_for_response(self, call: _Call) -> None:
        """Waits until `take` would not block, which means that a response or the end of the call has arrived."""
        loop = asyncio.get_running_loop()
        self._enter(loop)
        try:
            await self._wait_for_response(call, loop)
        finally:
            self._leave(loop)

    async def _wait_for_response(self, call: _Call, loop: asyncio.AbstractEventLoop) -> None:
        there, notify = _signal(loop)
        with self._reader.changed:
            call.done = notify
            if call.responses or call.is_last_there:
                return
        await there

    def _enter(self, loop: asyncio.AbstractEventLoop) -> None:
        count = self._counts.get(loop, 0)
        self._counts[loop] = count + 1
        if count:
            return
        loop.add_reader(self._fd, self._reader.poll)
        self._reader.watchers[loop] = lambda: loop.call_soon_threadsafe(self._reader.poll)

    def _leave(self, loop: asyncio.AbstractEventLoop) -> None:
        count = self._counts.pop(loop) - 1
        if count:
            self._counts[loop] = count
            return
        loop.remove_reader(self._fd)
        self._reader.watchers.pop(loop, None)


def _signal(loop: asyncio.AbstractEventLoop) -> tuple[asyncio.Future[None], Callable[[], bool]]:
    """Returns a future of the loop, and a function that resolves it from any thread.

    After the loop was closed, the function does nothing.
    """
    future = loop.create_future()

    def happen() -> None:
        if not future.done():
            future.set_result(None)

    def notify() -> bool:
        try:
            loop.call_soon_threadsafe(happen)
            return True
        except RuntimeError:
            return False

    return future, notify
