"""The worker of this process, for functions and objects of pb_utils, which have no reference to the worker."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import wire
from .objects import TritonModelException

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Protocol

    from .awaited_calls import AwaitedCalls
    from .calls import Calls
    from .channel import Channel
    from .metric_requests import MetricRequests

    class Worker(Protocol):
        """The members of `worker.Worker` that pb_utils needs."""

        channel: Channel
        model_file: int | None
        version_directory: str
        backend_config: dict[str, str]
        instance_name: str
        may_call: bool

        def metric_requests(self) -> MetricRequests: ...

        def calls(self) -> Calls: ...

        def awaited_calls(self) -> AwaitedCalls: ...

        def calling_execution(self) -> int | None: ...

        def is_request_cancelled(self, execution_id: int, request_index: int) -> bool: ...


_MESSAGE_CHARACTERS_MAX = 16384
_NAME_CHARACTERS_MAX = 4096

_worker = None


def become(worker: Worker) -> None:
    """Sets the worker of this process. Called once, after the fork."""
    global _worker
    _worker = worker


def log(level: int, message: str, filename: str, line: int) -> None:
    """Sends a line to the server's log."""
    if _worker is None:
        raise TritonModelException("pb_utils.Logger is used outside of a worker process")
    said = {"message": message[:_MESSAGE_CHARACTERS_MAX], "file": filename[:_NAME_CHARACTERS_MAX], "line": line}
    _worker.channel.send(wire.frame(wire.LOG, json.dumps(said).encode("utf-8"), extra=level))


def model_directory() -> str:
    """Returns the directory of the model's version."""
    if _worker is None:
        raise TritonModelException("pb_utils.get_model_dir is used outside of a worker process")
    return _worker.version_directory


def backend_config() -> dict[str, str]:
    """Returns the settings from --backend-config for the model's backend. The programs of python-based backends use it."""
    return _worker.backend_config


def model_file() -> int | None:
    """Returns a file descriptor of the model's file in memory that workers with equal files share.

    Returns None if the file must be read from disk.
    """
    return None if _worker is None else _worker.model_file


def on_idle(rest: Callable[[], None]) -> None:
    """Sets a callback, which is called once when no frame has arrived for two seconds (`Channel.on_idle`)."""
    if _worker is not None:
        _worker.channel.on_idle(rest)


def metric_requests() -> MetricRequests:
    """Returns the object that sends requests about metrics to the server."""
    if _worker is None:
        raise TritonModelException("pb_utils.MetricFamily is used outside of a worker process")
    return _worker.metric_requests()


def may_call() -> bool:
    """Returns whether the model is initialized. Before that, it cannot call other models."""
    return _worker is not None and _worker.may_call


def calls() -> Calls:
    """Returns the object that calls other models for this process."""
    if _worker is None:
        raise TritonModelException("pb_utils: other models are reached from a worker process only")
    return _worker.calls()


def awaited_calls() -> AwaitedCalls:
    """Returns the object that calls other models for coroutines."""
    return _worker.awaited_calls()


def calling_execution() -> int | None:
    """Returns the id of the execution to which the calling code belongs; None if it belongs to none."""
    return _worker.calling_execution()


def instance_name() -> str:
    """Returns the instance's name for messages."""
    return _worker.instance_name


def is_request_cancelled(execution_id: int, request_index: int) -> bool:
    """Returns whether a request of a running execution was cancelled. May be called from any thread."""
    return _worker.is_request_cancelled(execution_id, request_index)
