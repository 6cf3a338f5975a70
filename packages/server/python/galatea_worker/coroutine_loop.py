"""The event loop of a model's coroutines, in a separate thread. As in Triton, tasks continue after `execute` has returned."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any


class CoroutineLoop:
    """An event loop in a thread. Created at a model's first coroutine; ends with the process."""

    def __init__(self) -> None:
        self._execution = contextvars.ContextVar("execution", default=None)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._loop.run_forever()
            except BaseException:  # noqa: BLE001 - SystemExit of one task must not end the loop, which other tasks need
                continue

    def start(
        self, coroutine: Coroutine[Any, Any, Any], execution_id: int, done: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Runs a coroutine of `execute`. Calls `done(result, error)` in the loop's thread."""

        async def awaited() -> None:
            self._execution.set(execution_id)
            try:
                # The result is in a list, so that no variable of this function holds a reference to it while `done` uses it.
                outcome = [await coroutine]
            except BaseException as error:  # noqa: BLE001 - any exception fails the execution
                done(None, error)
            else:
                done(outcome.pop(), None)

        asyncio.run_coroutine_threadsafe(awaited(), self._loop)

    def result_of(self, coroutine: Coroutine[Any, Any, Any], execution_id: int) -> Any:
        """Runs a coroutine in the loop and waits for it. Must not be called from the loop's thread.

        Raises the coroutine's exception.
        """
        outcomes = queue.SimpleQueue()
        self.start(coroutine, execution_id, lambda *outcome: outcomes.put(outcome))
        result, error = outcomes.get()
        if error is not None:
            raise error
        return result

    def execution(self) -> int | None:
        """Returns the execution to which the running coroutine or task belongs; None outside of the loop."""
        return self._execution.get()
