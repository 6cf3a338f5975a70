"""Shared code of all attempts, and the check whether an attempt was blocked."""

import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
# Names that no tenant may find in a directory.
FOREIGN = set()


class KeptOff(Exception):
    """The attempt was blocked."""


class Attempts(dict):
    """Functions by the description of the attempt. A function raises if it is blocked."""

    def named(self, name):
        def note(function):
            self[name] = function
            return function

        return note


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def call(name, *arguments):
    return checked(getattr(libc, name)(*(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments)))


def any_of(values, reach):
    """The attempt succeeds if one of these succeeds."""
    reached = []
    reasons = []
    for value in values:
        try:
            reach(value)
            reached.append(str(value))
        except Exception as error:
            reasons.append("%s: %s" % (type(error).__name__, error))
    if not reached:
        raise KeptOff("; ".join(sorted(set(reasons)))[:300] or "nothing to try")
    return ", ".join(reached)[:300]


def read(path):
    if os.path.isdir(path):
        if FOREIGN.isdisjoint(os.listdir(path)):
            raise KeptOff("nothing of others in it")
        return
    with open(path, "rb") as file:
        if not file.read(64):
            raise KeptOff("empty")


def write(path):
    if os.path.isdir(path):
        name = os.path.join(path, "left-by-a-tenant")
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY))
        os.unlink(name)
        return
    with open(path, "r+b") as file:
        first = file.read(1)
        file.seek(0)
        file.write(first)
