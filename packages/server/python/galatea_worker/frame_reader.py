"""Decides which thread reads the socket of a worker whose model is decoupled or calls other models.

The reading thread is always one of the threads that wait for a frame.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from .channel import Channel


def read_alone(
    channel: Channel,
    reader: Callable[[], FrameReader | None],
    dispatch: Callable[[memoryview], None],
    is_there: Callable[[], object],
) -> None:
    """Reads frames until `is_there()` is true.

    Returns early if another thread reads, or if another thread has created a FrameReader, which `reader()` then returns."""
    if not channel.reading.acquire(False):
        return
    try:
        while reader() is None and not is_there():
            frame = channel.receive()
            if frame is None:
                return
            made = reader()
            if made is None:
                dispatch(frame)
            else:
                made.hand_over(frame)
    finally:
        channel.reading.release()
        made = reader()
        if made is not None:
            made.hand_over()


class FrameReader:
    """Lets several threads wait for frames on one socket.

    One of the waiting threads reads and notifies the others; a thread that does not wait never reads. `dispatch(frame)` is called with
    `changed` held. The conditions of waiting threads may change only while `changed` is held, or by a frame.
    """

    def __init__(self, channel: Channel, dispatch: Callable[[memoryview], None], is_reading: bool = False) -> None:
        self.changed = threading.Condition()
        # True when the server has closed the socket.
        self.is_over = False
        self._channel = channel
        self._dispatch = dispatch
        # True while a thread that read before this object existed still reads. It ends its reading with `hand_over`.
        self._is_reading = is_reading
        self._is_handed_over = not is_reading
        # Callbacks of event loops, called when a thread stops reading and leaves frames unread. Event loops poll the socket, therefore they
        # cannot see frames that were already received from it.
        self.watchers = {}

    def hand_over(self, frame: memoryview | None = None) -> None:
        """Ends the reading by the thread that read before this object existed. `frame` is a frame that the thread has received in the
        meantime."""
        with self.changed:
            if frame is not None:
                self._dispatch(frame)
            if not self._is_handed_over:
                self._is_handed_over = True
                self._is_reading = False
            self.changed.notify_all()

    def redirect(self, dispatch: Callable[[memoryview], None]) -> None:
        """Sends all later frames to `dispatch`."""
        with self.changed:
            self._dispatch = dispatch

    def wait(self, is_there: Callable[[], object]) -> None:
        """Waits until `is_there()` is true or the server has closed the socket. The caller must not hold `changed`."""
        with self.changed:
            while not is_there() and not self.is_over:
                if self._is_reading:
                    self.changed.wait()
                else:
                    self._read()
            if self.watchers and not self._is_reading and self._channel.has_frame():
                for notify in list(self.watchers.values()):
                    notify()

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
        """Handles the frames that have arrived, without waiting. Does nothing while another thread reads."""
        with self.changed:
            if self._is_reading:
                return
            for _ in self._channel.look():
                self._dispatch(self._channel.receive())
            self.changed.notify_all()
