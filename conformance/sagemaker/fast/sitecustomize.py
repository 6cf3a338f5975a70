"""Gives a Python program the clock of the platform of `up.ts`, whose minutes are short: what it reads, and what it sleeps by.

Python imports a module of this name by itself. FAST_CLOCK is when the clock began, in milliseconds, and how many times faster it is.
"""

import datetime
import os
import time

began, factor = (float(each) for each in os.environ["FAST_CLOCK"].split(","))
machine_time, machine_sleep, machine_datetime = time.time, time.sleep, datetime.datetime


def fast_time():
    return began / 1000 + (machine_time() - began / 1000) * factor


class AnyDatetime(type):
    """Times that C code makes are of the class that Moved stands for."""

    def __instancecheck__(cls, value):
        return isinstance(value, machine_datetime)


class Moved(machine_datetime, metaclass=AnyDatetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(fast_time(), tz)

    @classmethod
    def utcnow(cls):
        return cls.now(datetime.timezone.utc).replace(tzinfo=None)

    @classmethod
    def today(cls):
        return cls.now()


time.time = fast_time
time.sleep = lambda seconds: machine_sleep(seconds / factor)
datetime.datetime = Moved
