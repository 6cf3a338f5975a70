"""Checks the worker's channel: `python channel_test.py`. Needs only the standard library.

Checks that the buffer of a large frame is not kept for small frames, and that polling pauses while another process needs the core.
"""

from __future__ import annotations

import socket
import threading

from galatea_worker import channel as channel_module
from galatea_worker import wire
from galatea_worker.channel import Channel

LARGE = 50_000_000
KEPT_MAX = 4 * 1024 * 1024


def check(reads_ahead: bool) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    channel = Channel(ours.detach())
    sender = threading.Thread(target=theirs.sendall, args=(wire.frame(wire.EXECUTE, bytes(LARGE)),))
    sender.start()
    assert len(channel.receive()) > LARGE
    sender.join()
    theirs.sendall(wire.frame(wire.EXECUTE, b"small"))
    if reads_ahead:
        assert len(channel.look()) == 1
    assert bytes(channel.receive()[wire.HEADER_BYTES :]) == b"small"
    assert len(channel._buffer) <= KEPT_MAX, len(channel._buffer)
    channel.close()
    theirs.close()


class Preempting:
    """A clock, and a `sched_yield` during which another process uses the core for 3 ms."""

    def __init__(self) -> None:
        self.now = 100.0
        self.yields = 0

    def perf_counter(self) -> float:
        return self.now

    def sched_yield(self) -> None:
        self.yields += 1
        self.now += 0.003


def check_pause() -> None:
    clock = Preempting()
    channel_module.time = channel_module.os = clock
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    channel = Channel(ours.detach())

    def poll_once() -> int:
        before = clock.yields
        channel.next_is_near = True
        sender = threading.Timer(0.05, theirs.sendall, args=(wire.frame(wire.EXECUTE, b"small"),))
        sender.start()
        channel.receive()
        sender.join()
        return clock.yields - before

    assert poll_once() == 1
    clock.now += 0.004
    assert poll_once() == 0
    clock.now += 0.002
    assert poll_once() == 1
    # The second pause is twice as long.
    clock.now += 0.008
    assert poll_once() == 0
    clock.now += 0.003
    assert poll_once() == 1
    channel.close()
    theirs.close()


if __name__ == "__main__":
    check_pause()
    check(reads_ahead=False)
    check(reads_ahead=True)
