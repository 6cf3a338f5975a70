"""Who reads the socket of a worker whose model is decoupled or calls others: whoever waits for something that comes through it, one at a time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .channel import Channel


def read_alone(
    channel: Channel,
    turns: Callable[[], FrameTurns | None],
    dispatch: Callable[[memoryview], None],
    is_there: Callable[[], object],
) -> None:
    """Reads until `is_there()`, where nobody else does and as long as there are no turns; `turns()` are those that another thread has made."""
    if not channel.reading.acquire(False):
        return
    try:
        while turns() is None and not is_there():
            frame = channel.receive()
            if frame is None:
                return
            made = turns()
            if made is None:
                dispatch(frame)
            else:
                made.hand_over(frame)
    finally:
        channel.reading.release()
        made = turns()
        if made is not None:
            made.hand_over()


class FrameTurns:
    """Threads wait here. One of them reads, and tells the others what has come; no thread reads that waits for nothing.

    `dispatch(frame)` is called with `changed` held. What threads wait for changes with `changed` held, or by a frame.
    """

    def __init__(self, channel: Channel, dispatch: Callable[[memoryview], None], is_reading: bool = False) -> None:
        self.changed = threading.Condition()
        # The server is gone.
        self.is_over = False
        self._channel = channel
        self._dispatch = dispatch
        # Whoever read before there were turns does so until `hand_over`.
        self._is_reading = is_reading
        self._is_handed_over = not is_reading
        # Told when somebody stops reading while frames are there: event loops, which look at the socket and not at what was read from it.
        self.watchers = {}

    def hand_over(self, frame: memoryview | None = None) -> None:
        """Whoever read the socket before there were turns does so no more; `frame` came meanwhile."""
        with self.changed:
            if frame is not None:
                self._dispatch(frame)
            if not self._is_handed_over:
                self._is_handed_over = True
                self._is_reading = False
            self.changed.notify_all()

    def redirect(self, dispatch: Callable[[memoryview], None]) -> None:
        """Frames go there from now on."""
        with self.changed:
            self._dispatch = dispatch

    def wait(self, is_there: Callable[[], object]) -> None:
        """Until `is_there()`, or the server is gone. The caller must not hold `changed`."""
        with self.changed:
            while not is_there() and not self.is_over:
                if self._is_reading:
                    self.changed.wait()
                else:
                    self._read()
            if self.watchers and not self._is_reading and self._channel.has_frame():
                for tell in list(self.watchers.values()):
                    tell()

    def _read(self) -> None:
        self._is_reading = True
        frame = None
        self.changed.release()
        try:
            frame = self._channel.receive()
        except OSError:
            pass
        finally:
            self.changed.acquire()
            self._is_reading = False
            self.changed.notify_all()
        if frame is None:
            self.is_over = True
        else:
            self._dispatch(frame)

    def poll(self) -> None:
        """Takes what has arrived, without waiting; where another thread reads there is nothing to take."""
        with self.changed:
            if self._is_reading:
                return
            for _ in self._channel.look():
                self._dispatch(self._channel.receive())
            self.changed.notify_all()
