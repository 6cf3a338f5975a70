"""Gives a Python program the fast clock of the platform in `up.ts`, for reading the time and for sleeping.

Python imports a module of this name at its start. FAST_CLOCK has the clock's start in milliseconds and its speed.
"""

import datetime
import os
import time

began, factor = (float(each) for each in os.environ["FAST_CLOCK"].split(","))
machine_time, machine_sleep, machine_datetime = time.time, time.sleep, datetime.datetime


def fast_time():
    return began / 1000 + (machine_time() - began / 1000) * factor


class AnyDatetime(type):
    """Times created by C code are instances of the class that Moved replaces."""

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
