"""The worker's socket to the server. Sends and receives whole frames, from any thread."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING

from . import wire

if TYPE_CHECKING:
    from collections.abc import Callable

_FIRST_BUFFER_BYTES = 16 * 1024
# Maximum size in bytes of a buffer that is kept. A buffer that has grown larger for one frame is discarded.
_KEPT_BUFFER_BYTES = 4 * 1024 * 1024
_AWAKE_SECONDS = 0.0002
# A polling thread that gets its core back later than this was preempted, because another process needs the core. The thread then pauses
# polling.
_PREEMPTED_SECONDS = 0.0005
_PAUSE_SECONDS_MIN = 0.005
_PAUSE_SECONDS_MAX = 1.28
# If the thread is preempted again within this time after a pause, another process is assumed to need the core permanently, and the next
# pause is longer.
_REPEATED_SECONDS = 0.02
_LOOK_BYTES_MAX = 256 * 1024
_REST_AFTER = struct.pack("@ll", 2, 0)
_FOR_EVER = struct.pack("@ll", 0, 0)


class Channel:
    """Sends and receives frames over a stream socket.

    Any thread may send. Only the thread that holds `reading` receives and polls. Initially, this is the thread that creates the channel.
    """

    def __init__(self, fd: int) -> None:
        # The base class of socket.socket is used, because the constructor of socket.socket writes to memory pages that workers share.
        self._socket = socket.SocketType(socket.AF_UNIX, socket.SOCK_STREAM, 0, fd)
        self._buffer = bytearray(_FIRST_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0
        self._end = 0
        self._lock = threading.Lock()
        self.reading = threading.Lock()
        self.reading.acquire()
        self._released = []
        self._later = []
        self.idle = False
        self.next_is_near = False
        self._pause = _PAUSE_SECONDS_MIN
        self._paused_until = 0.0
        # Callback for an idle channel; None for no callback.
        self._rest = None

    def on_idle(self, rest: Callable[[], None]) -> None:
        """Sets the callback `rest`. The receiving thread calls it once when no frame has arrived for two seconds."""
        self._rest = rest
        # The kernel's timeout is used, because it costs no additional system call.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _REST_AFTER)

    def send(self, data: bytes) -> None:
        """Sends one frame."""
        with self._lock:
            self._socket.sendall(data)
        if (self._released and self.idle) or self._later:
            self.flush_released()

    def send_whenever(self, data: bytes) -> None:
        """Sends a frame as soon as no other thread is sending.

        May be called from any thread at any time, because this method never waits for the lock.
        """
        self._later.append(data)
        self.flush_released()

    def receive(self) -> memoryview | None:
        """Returns the next frame as a view that is valid until the next call; returns None if the server has closed the socket."""
        while True:
            have = self._end - self._start
            if have >= wire.HEADER_BYTES:
                size = wire.HEADER.unpack_from(self._view, self._start)[0]
                if have >= size:
                    frame = self._view[self._start : self._start + size]
                    self._start += size
                    return frame
                self._make_room(size)
            elif have == 0:
                self._forget()
            else:
                self._make_room(wire.HEADER_BYTES)
            count = self._receive_some(self._view[self._end :])
            if count == 0:
                return None
            self._end += count

    def _receive_some(self, into: memoryview) -> int:
        """Waits for bytes.

        Polls if a frame is expected soon, because sleeping and waking up takes longer than a run of a small model. Polling yields the
        processor to other threads.
        """
        if self.next_is_near:
            self.next_is_near = False
            now = time.perf_counter()
            until = now + _AWAKE_SECONDS if now >= self._paused_until else now
            while now < until:
                try:
                    return self._socket.recv_into(into, 0, socket.MSG_DONTWAIT)
                except BlockingIOError:
                    os.sched_yield()
                before, now = now, time.perf_counter()
                if now - before > _PREEMPTED_SECONDS:
                    self._preempted(now)
        try:
            count = self._socket.recv_into(into)
        except BlockingIOError:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _FOR_EVER)
            self._rest()
            count = self._socket.recv_into(into)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _REST_AFTER)
        return count

    def _preempted(self, now: float) -> None:
        """Starts a pause of polling. The pause is twice as long as the previous one if that one ended only a short time ago."""
        is_repeated = now - self._paused_until < _REPEATED_SECONDS
        self._pause = min(self._pause * 2, _PAUSE_SECONDS_MAX) if is_repeated else _PAUSE_SECONDS_MIN
        self._paused_until = now + self._pause

    def fileno(self) -> int:
        """Returns the socket's descriptor, for an event loop that polls it."""
        return self._socket.fileno()

    def close(self) -> None:
        """Closes the socket."""
        self._socket.close()

    def has_frame(self) -> bool:
        """Returns whether `receive` would return a frame without reading from the socket."""
        have = self._end - self._start
        return have >= wire.HEADER_BYTES and have >= wire.HEADER.unpack_from(self._view, self._start)[0]

    def look(self) -> list[tuple[int, int, int, int, int]]:
        """Receives available bytes without waiting.

        Returns the header of each whole frame that `receive` will return. The frame that `receive` returned last becomes invalid.
        """
        if self._start == self._end:
            # The buffer is emptied first, because the buffer of a large frame must not be kept.
            self._forget()
        while self._end - self._start < _LOOK_BYTES_MAX:
            have = self._end - self._start
            if self._end == len(self._buffer):
                self._make_room(max(2 * have, _FIRST_BUFFER_BYTES))
            try:
                count = self._socket.recv_into(self._view[self._end :], 0, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            if count == 0:
                break
            self._end += count
        headers = []
        at = self._start
        while self._end - at >= wire.HEADER_BYTES:
            header = wire.HEADER.unpack_from(self._view, at)
            at += header[0]
            if at > self._end:
                break
            headers.append(header)
        return headers

    def _forget(self) -> None:
        """Discards the content of the buffer if all of its frames were returned."""
        self._start = self._end = 0
        if len(self._buffer) > _KEPT_BUFFER_BYTES:
            self._renew(_FIRST_BUFFER_BYTES)

    def _make_room(self, size: int) -> None:
        if self._start + size <= len(self._buffer):
            return
        kept = bytes(self._view[self._start : self._end])
        if size > len(self._buffer):
            self._renew(size)
        self._view[: len(kept)] = kept
        self._start = 0
        self._end = len(kept)

    def _renew(self, size: int) -> None:
        self._buffer = bytearray(size)
        self._view = memoryview(self._buffer)

    def release(self, lent_id: int) -> None:
        """Records that the last view of a lent block was deleted. May be called from any thread at any time."""
        self._released.append(lent_id)
        if self.idle:
            self.flush_released()

    def take_released(self) -> list[int]:
        """Returns the ids of blocks released since the last call. The caller must report them to the server."""
        released = self._released
        if not released:
            return released
        taken = released[:]
        del released[: len(taken)]
        return taken

    def flush_released(self) -> None:
        """Reports released blocks to the server.

        Never waits for the lock: the thread that holds it checks for released blocks when it releases the lock.
        """
        while (self._released and self.idle) or self._later:
            if not self._lock.acquire(False):
                return
            try:
                # During an execution, released blocks are reported with its result instead.
                taken = self.take_released() if self.idle else ()
                if taken:
                    self._socket.sendall(wire.encode_released(taken))
                while self._later:
                    self._socket.sendall(self._later.pop(0))
            finally:
                self._lock.release()
