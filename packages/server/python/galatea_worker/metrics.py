"""Custom metrics of a model: `pb_utils.MetricFamily` and the metrics that it creates.

The values of a metric are in cells of shared memory, which only this process writes and the server reads. Therefore changing a value sends
no frame and is visible at once. Frames are sent only to create a family or a metric, to read a value, and to delete a family.
"""

from __future__ import annotations

import bisect
import itertools
import json
import math
import threading
import weakref
from typing import TYPE_CHECKING

from . import current_worker, metric_requests, metric_wire
from .metric_requests import ID_MAX, counting
from .objects import TritonModelException
from .signatures import MODULE, ArgumentMismatch, checked, enumeration, text_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .arena import Arena
    from .metric_requests import MetricRequests


_COUNTER, _GAUGE, _HISTOGRAM = range(3)
_NAMES = ("COUNTER", "GAUGE", "HISTOGRAM")
# Indexes of the cells of a gauge.
_VALUE, _INCREMENTS, _SETTING = range(3)
_HOLDER_OF_SETTING = 2.0**32

MetricKind = enumeration("MetricKind", _NAMES)


def _response_to(requests: MetricRequests, encode: Callable[[int], bytes]) -> bytes:
    """Returns the body of the response to a request. Raises TritonModelException if the request was rejected."""
    refusal, body = requests.response_to(encode)
    if refusal is not None:
        raise TritonModelException(_refused(refusal))
    return body


def _refused(reason: str) -> str:
    return "Failed to process the request for model '%s', message: %s" % (current_worker.instance_name(), reason)


class _Cells:
    """The cells of one metric in shared memory."""

    __slots__ = ("_holder", "_settings", "bounds", "metric_id", "numbers", "shared")

    def __init__(
        self, metric_id: int, arena: Arena, kind: int, location: tuple[int, int, int, tuple[float, ...]]
    ) -> None:
        offset, shared_offset, self._holder, self.bounds = location
        self.metric_id = metric_id
        self.numbers = arena.numbers(offset, (1, 3, len(self.bounds) + 2)[kind])
        self.shared = arena.numbers(shared_offset, 1) if kind == _GAUGE else None
        self._settings = itertools.count(1)

    def next_setting(self) -> float:
        """Returns a unique id for a new `set` call of a gauge."""
        return self._holder * _HOLDER_OF_SETTING + (next(self._settings) & ID_MAX)


class _FamilyState:
    """The server's resources for a family and its metrics.

    The resources are released with the family, or when the last running operation on it has ended.
    """

    __slots__ = ("__weakref__", "cells", "family_id", "requests")

    def __init__(self, requests: MetricRequests, kind: Any, name: str, description: str) -> None:
        self.requests = requests
        self.cells = {}
        self.family_id = 0
        family_id = requests.families.take()
        try:
            _response_to(
                requests,
                lambda request_id: metric_wire.encode_family(request_id, family_id, kind.value, name, description),
            )
        except BaseException:
            requests.families.give_back([family_id])
            raise
        self.family_id = family_id

    def __del__(self) -> None:
        if self.family_id != 0 and not metric_requests.is_forked:
            self.requests.released(self.family_id, [cells.metric_id for cells in self.cells.values()])


class MetricFamily:
    """A family of metrics with one name and kind. Deleting the family ends its metrics, which must not be used afterwards."""

    __slots__ = ("_state", "_kind", "_making")

    __module__ = MODULE
    COUNTER, GAUGE, HISTOGRAM = MetricKind.__members__.values()

    @checked(
        "c_python_backend_utils.MetricFamily(name: str, description: str, kind: c_python_backend_utils.MetricKind)"
    )
    def __init__(self, name: str, description: str, kind: Any) -> None:
        texts = [text_of(name), text_of(description)]
        if not isinstance(kind, MetricKind):
            raise ArgumentMismatch
        self._kind = kind
        # Reentrant, because the garbage collector may run code of the model that creates a metric while the lock is held.
        self._making = threading.RLock()
        _check_process()
        try:
            self._state = _FamilyState(current_worker.metric_requests(), kind, *texts)
        except TritonModelException as error:
            raise TritonModelException("Error when creating MetricFamily: %s" % error) from None

    def Metric(self, labels: dict[str, str] | None = None, buckets: list[float] | None = None) -> Metric:
        """Returns a metric with these labels. Metrics with equal labels share one value, even between models of the namespace."""
        if labels is not None and not isinstance(labels, dict):
            raise TritonModelException("Failed to create metric. Labels must be a dictionary.")
        text = json.dumps(labels)
        bounds = self._bounds(buckets)
        _check_process()
        try:
            return Metric._of(self._kind, self._state, self._cells(text, bounds))
        except TritonModelException as error:
            raise TritonModelException("Error when creating Metric: %s" % error) from None

    def _bounds(self, buckets: object) -> tuple[float, ...]:
        if buckets is None:
            if self._kind is MetricFamily.HISTOGRAM:
                raise TritonModelException("Failed to create metric. Missing required buckets.")
            return ()
        if not isinstance(buckets, list):
            raise TritonModelException("Failed to create metric. Buckets must be a list.")
        if self._kind is not MetricFamily.HISTOGRAM:
            raise TritonModelException("Failed to create metric. Unexpected buckets found.")
        return tuple(_double(bound, "Metric") for bound in buckets)

    def _cells(self, text: str, bounds: tuple[float, ...]) -> _Cells:
        # Converts labels like Triton: keys become JSON text, and values must be strings.
        labels = json.loads(text) or {}
        if not all(isinstance(value, str) for value in labels.values()):
            raise TritonModelException(_refused("attempt to access JSON non-string as string"))
        state = self._state
        key = tuple(sorted(labels.items()))
        with self._making:
            cells = state.cells.get(key)
            if cells is None:
                requests = state.requests
                metric_id = requests.metrics.take()
                try:
                    body = _response_to(
                        requests,
                        lambda request_id: metric_wire.encode_metric(
                            request_id, metric_id, state.family_id, labels, bounds
                        ),
                    )
                except BaseException:
                    requests.metrics.give_back([metric_id])
                    raise
                cells = state.cells[key] = _Cells(
                    metric_id, requests.arena, self._kind.value, metric_wire.decode_cells(body)
                )
            return cells


class Metric:
    """A metric with one set of labels, created by `MetricFamily.Metric`."""

    __slots__ = ("_cells", "_state", "_kind")

    def __new__(cls, *_arguments: object, **_options: object) -> NoReturn:
        raise TypeError("Metric: No constructor defined! MetricFamily.Metric makes one")

    @classmethod
    def _of(cls, kind: Any, state: _FamilyState, cells: _Cells) -> Metric:
        metric = object.__new__(cls)
        metric._kind = kind
        metric._state = weakref.ref(state)
        metric._cells = cells
        return metric

    def _open_state(self, action: str) -> _FamilyState:
        """Returns the server's resources; raises TritonModelException if the family was deleted.

        The cells may be written as long as the caller refers to the result.
        """
        _check_process()
        state = self._state()
        if state is None:
            raise TritonModelException(
                "Failed to %s metric value: Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The "
                "'MetricFamily' object should be deleted AFTER its corresponding 'Metric' objects have been deleted."
                % action
            )
        return state

    def _refuse(self, action: str, reason: str) -> NoReturn:
        reason = "TRITONSERVER_METRIC_KIND_%s %s" % (self._kind.name, reason)
        raise TritonModelException("Failed to %s metric value: %s" % (action, _refused(reason)))

    def increment(self, value: float, /) -> None:
        """Adds to a counter, which rejects negative values, or to a gauge."""
        amount = value if type(value) is float else _double(value, "increment")
        _state = self._open_state("increment")
        cells = self._cells
        if self._kind is MetricFamily.COUNTER:
            if amount < 0:
                self._refuse("increment", "can only be incremented monotonically by non-negative values.")
            with counting:
                cells.numbers[0] += amount
        elif self._kind is MetricFamily.GAUGE:
            numbers = cells.numbers
            with counting:
                setting = cells.shared[0]
                if numbers[_SETTING] != setting:
                    numbers[_INCREMENTS] = 0.0
                    numbers[_SETTING] = setting
                numbers[_INCREMENTS] += amount
        else:
            self._refuse("increment", "does not support Increment")

    def set(self, value: float, /) -> None:
        """Sets a gauge."""
        amount = value if type(value) is float else _double(value, "set")
        _state = self._open_state("set")
        if self._kind is not MetricFamily.GAUGE:
            self._refuse("set", "does not support Set")
        cells = self._cells
        numbers = cells.numbers
        with counting:
            setting = cells.next_setting()
            numbers[_VALUE] = amount
            numbers[_INCREMENTS] = 0.0
            numbers[_SETTING] = setting
            cells.shared[0] = setting

    def observe(self, value: float, /) -> None:
        """Adds an observation to a histogram."""
        amount = value if type(value) is float else _double(value, "observe")
        _state = self._open_state("observe")
        if self._kind is not MetricFamily.HISTOGRAM:
            self._refuse("observe", "does not support Observe")
        cells = self._cells
        # Like Triton, counts NaN in the first bucket.
        bucket = 0 if math.isnan(amount) else bisect.bisect_left(cells.bounds, amount)
        with counting:
            cells.numbers[0] += amount
            cells.numbers[1 + bucket] += 1.0

    def value(self) -> float:
        """Returns the value of a counter or gauge over all processes that use the family with these labels."""
        state = self._open_state("get")
        metric_id = self._cells.metric_id
        try:
            return metric_wire.decode_value(
                _response_to(state.requests, lambda request_id: metric_wire.encode_value(request_id, metric_id))
            )
        except TritonModelException as error:
            raise TritonModelException("Failed to get metric value: %s" % error) from None


def _double(value: Any, function: str) -> float:
    """Converts a value to a double like Triton's C++ code, which rejects texts."""
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    return _incompatible(function, "function", "arg0: float")


def _incompatible(name: str, what: str, takes: str) -> NoReturn:
    raise TypeError(
        "%s(): incompatible %s arguments. The following argument types are supported:\n    1. (%s)"
        % (name, what, takes)
    )


def _check_process() -> None:
    if metric_requests.is_forked:
        raise TritonModelException(
            "metrics count in the process of the model's instance only, not in one that it has forked"
        )
