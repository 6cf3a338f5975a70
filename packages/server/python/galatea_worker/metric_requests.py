"""Sends requests about a model's metrics to the server, and assigns the ids of metric families and metrics."""

from __future__ import annotations

import itertools
import os
import threading
from typing import TYPE_CHECKING

from . import metric_wire

if TYPE_CHECKING:
    from collections.abc import Callable

    from .arena import Arena
    from .channel import Channel


ID_MAX = 0xFFFFFFFF

# Reentrant, because the garbage collector may run code of the model that changes a metric while the lock is held.
counting = threading.RLock()
# True in a process that the model has forked. The parent process owns the cells.
is_forked = False


def _after_fork() -> None:
    global is_forked
    is_forked = True


class MetricRequests:
    """The metric requests of this process.

    `wait(is_there)` reads frames, or waits for the thread that reads, until `is_there()` is true or the server has closed the socket.
    """

    def __init__(self, channel: Channel, arena: Arena, wait: Callable[[Callable[[], object]], None]) -> None:
        self.arena = arena
        self.families = _Ids()
        self.metrics = _Ids()
        self._channel = channel
        self._wait = wait
        self._responses = {}
        self._numbers = itertools.count(1)
        os.register_at_fork(after_in_child=_after_fork)

    def responded(self, frame: memoryview) -> None:
        """Handles a response. Called by the thread that reads."""
        request_id, refusal, body = metric_wire.decode_result(frame)
        self._responses[request_id] = (refusal, body)

    def response_to(self, encode: Callable[[int], bytes]) -> tuple[str | None, bytes]:
        """Sends the request `encode(request_id)`. Returns the reason of a rejection (None on success) and the body of the response."""
        request_id = next(self._numbers) & ID_MAX
        self._channel.send(encode(request_id))
        self._wait(lambda: request_id in self._responses)
        return self._responses.pop(request_id, ("The server is gone.", b""))

    def released(self, family_id: int, metric_ids: list[int]) -> None:
        """Reports that a family was deleted. May be called from any thread at any time."""
        self._channel.send_whenever(metric_wire.encode_released(family_id))
        self.metrics.give_back(metric_ids)
        self.families.give_back([family_id])


class _Ids:
    """Assigns ids, each to one owner at a time."""

    def __init__(self) -> None:
        self._taken = set()
        self._last = 0

    def take(self) -> int:
        with counting:
            while True:
                self._last = self._last % ID_MAX + 1
                if self._last not in self._taken:
                    self._taken.add(self._last)
                    return self._last

    def give_back(self, ids: list[int]) -> None:
        # Every step is atomic in the interpreter, because the garbage collector may run this method during `take`.
        for one in ids:
            self._taken.discard(one)
