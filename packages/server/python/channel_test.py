"""Checks that no way of reading keeps the buffer of a large frame for a small one: `python channel_test.py`. Needs the standard library only."""

from __future__ import annotations

import socket
import threading

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


if __name__ == "__main__":
    check(reads_ahead=False)
    check(reads_ahead=True)
