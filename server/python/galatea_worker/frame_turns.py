"""Who reads the socket of a decoupled model's worker: whoever waits for something that comes through it, one at a time."""

import threading


class FrameTurns:
    """Threads wait here. One of them reads, and tells the others what has come; no thread reads that waits for nothing.

    `dispatch(frame)` is called with `changed` held. What threads wait for changes with `changed` held, or by a frame.
    """

    def __init__(self, channel, dispatch):
        self.changed = threading.Condition()
        # The server is gone.
        self.is_over = False
        self._channel = channel
        self._dispatch = dispatch
        self._is_reading = False

    def wait(self, is_there):
        """Until `is_there()`, or the server is gone. The caller must not hold `changed`."""
        with self.changed:
            while not is_there() and not self.is_over:
                if self._is_reading:
                    self.changed.wait()
                else:
                    self._read()

    def _read(self):
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

    def poll(self):
        """Takes what has arrived, without waiting; where another thread reads there is nothing to take."""
        with self.changed:
            if self._is_reading:
                return
            for _ in self._channel.look():
                self._dispatch(self._channel.receive())
            self.changed.notify_all()
