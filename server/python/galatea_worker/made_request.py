"""Requests that a model makes for other models, and what it says and asks of them: loads, unloads, readiness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import current_worker, wire
from .objects import Tensor, TritonModelException, check_limit, text_of

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from .calls import Calls, ResponseIterator
    from .objects import InferenceRequest, InferenceResponse


_MISSING = object()
_MEMORY_TYPES = (0, 1)


class PreferredMemory:
    """Where the outputs of a call should lie. All memory here is the machine's: GPU is taken and not heeded."""

    __slots__ = ("_type", "_device_id")

    def __init__(self, preferred_memory_type: int, preferred_device_id: int = 0) -> None:
        for name, value in (
            ("preferred_memory_type", preferred_memory_type),
            ("preferred_device_id", preferred_device_id),
        ):
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError("PreferredMemory: %s must be an int, found %s" % (name, type(value).__name__))
        if preferred_memory_type not in _MEMORY_TYPES:
            raise TypeError(
                "PreferredMemory: %d is neither TRITONSERVER_MEMORY_CPU nor TRITONSERVER_MEMORY_GPU"
                % preferred_memory_type
            )
        self._type = preferred_memory_type
        self._device_id = preferred_device_id


class InferenceTrace:
    """A request's trace, to be handed on to the requests that it causes."""

    __slots__ = ()

    def get_context(self) -> str | None:
        """The trace's context as JSON text; None without one."""
        return None


def make(
    request: InferenceRequest,
    request_id: str = "",
    correlation_id: int | str = 0,
    inputs: Any = _MISSING,
    requested_output_names: Any = _MISSING,
    model_name: Any = _MISSING,
    model_version: int = -1,
    flags: int = 0,
    timeout: int = 0,
    preferred_memory: PreferredMemory | None = None,
    trace: InferenceTrace | None = None,
    parameters: dict[str, Any] | None = None,
) -> None:
    """The constructor of pb_utils.InferenceRequest. Raises TypeError for what cannot be a request."""
    for name, value in (
        ("inputs", inputs),
        ("requested_output_names", requested_output_names),
        ("model_name", model_name),
    ):
        if value is _MISSING:
            raise TypeError("InferenceRequest: %s is needed" % name)
    request._model_name = _text("model_name", model_name)
    request._wanted_version = _version(model_version)
    said = request._wire = wire.WireRequest()
    said.request_id = _text("request_id", request_id)
    said.correlation = _correlation(correlation_id)
    request._inputs = _list("inputs", inputs)
    for tensor in request._inputs:
        if not isinstance(tensor, Tensor):
            raise TypeError("InferenceRequest: inputs must hold pb_utils.Tensor, found %s" % type(tensor).__name__)
    request._requested = [
        _text("requested_output_names", name) for name in _list("requested_output_names", requested_output_names)
    ]
    said.flags = _number("flags", flags, 0xFFFFFFFF)
    said.timeout_us = _number("timeout", timeout, 2**64 - 1)
    if preferred_memory is not None and not isinstance(preferred_memory, PreferredMemory):
        raise TypeError(
            "InferenceRequest: preferred_memory must be a pb_utils.PreferredMemory, found %s"
            % type(preferred_memory).__name__
        )
    if trace is not None and not isinstance(trace, InferenceTrace):
        raise TypeError("InferenceRequest: trace must be a pb_utils.InferenceTrace, found %s" % type(trace).__name__)
    said.parameters = _parameters(parameters)
    request._place = None
    request._reply = None
    request._answers = None


def _text(name: str, value: object) -> str:
    return text_of("InferenceRequest: " + name, value)


def _list(name: str, value: object) -> list[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise TypeError("InferenceRequest: %s must be a list, found %s" % (name, type(value).__name__))
    return list(value)


def _number(name: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError("InferenceRequest: %s must be an int, found %s" % (name, type(value).__name__))
    value = value.__index__()
    if not 0 <= value <= most:
        raise TypeError("InferenceRequest: %s must lie between 0 and %d, found %d" % (name, most, value))
    return value


def _version(value: object) -> str:
    """As the wire has it: '' for the highest ready one. A number that no version has is asked for as it is."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError("InferenceRequest: model_version must be an int, found %s" % type(value).__name__)
    value = value.__index__()
    return "" if value == -1 else str(value)


def _correlation(value: object) -> int | str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TritonModelException("Correlation ID must be integer or string")
    value = value.__index__()
    if not 0 <= value < 2**64:
        raise RuntimeError(
            "Unable to cast Python instance to C++ type: a correlation id of 64 bits is needed, found %d" % value
        )
    return value


def _parameters(parameters: object) -> str:
    if parameters is None:
        return ""
    if not isinstance(parameters, dict):
        raise TritonModelException("Expect parameters to be a dict, got %s" % type(parameters))
    check_limit("the request has %d parameters", len(parameters), wire.PARAMETERS_MAX)
    for key, value in parameters.items():
        if not isinstance(key, str):
            raise TritonModelException("Expect parameters keys to have type str, found type %s" % type(key))
        if not isinstance(value, (bool, int, str)):
            raise TritonModelException(
                "Expect parameters values to have type bool/int/str, found type %s" % type(value)
            )
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise TritonModelException("Expect parameters values to have 64 bits, found %d" % value)
    return json.dumps(parameters) if parameters else ""


def execute(request: InferenceRequest, decoupled: bool) -> InferenceResponse | ResponseIterator:
    """See InferenceRequest.exec."""
    from .calls import ResponseIterator

    calls = _calls_of(request)
    call = calls.open(request, current_worker.calling_execution(), decoupled)
    if decoupled:
        return ResponseIterator(calls, call)
    try:
        return calls.take(call)
    except BaseException:
        calls.drop(call)
        raise


def execute_awaited(
    request: InferenceRequest, decoupled: bool
) -> Coroutine[Any, Any, InferenceResponse | ResponseIterator]:
    """See InferenceRequest.async_exec."""
    _calls_of(request)
    return current_worker.awaited_calls().exec(request, current_worker.calling_execution(), decoupled)


def _calls_of(request: InferenceRequest) -> Calls:
    if request._place is not None:
        raise TritonModelException("The request came to the model: one that the model makes can be executed.")
    if not current_worker.may_call():
        raise TritonModelException("BLS is only supported during the 'execute' function.")
    return current_worker.calls()


def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Loads a model of the server's repositories by name, `config` as JSON in place of its own, with `files` ('file:<path>' to bytes)."""
    contents = {}
    for path, content in (files or {}).items():
        if not isinstance(content, bytes):
            raise TypeError("Object of type '%s' is not an instance of 'bytes'" % type(content).__name__)
        contents[_text_of("load_model", "files", path)] = content
    config = _text_of("load_model", "config", config)
    text = {
        "config": config or None,
        "files": list(contents),
        "lengths": [len(content) for content in contents.values()],
    }
    _control("load_model", 1, model_name, text, list(contents.values()), "Failed to load model: ")


def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unloads a model by name; what it executes ends first. With `unload_dependents` also the steps that only it brought in."""
    _control("unload_model", 2, model_name, {"dependents": bool(unload_dependents)}, [], "Failed to unload model: ")


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model can be called now."""
    text = {"version": _text_of("is_model_ready", "model_version", model_version)}
    return _control("is_model_ready", 3, model_name, text, [], "Failed to check model readiness: ")["ready"]


def _control(
    function: str, verb: int, model_name: str, text: dict[str, Any], files: list[bytes], prefix: str
) -> dict[str, Any]:
    whole = {
        "model": _text_of(function, "model_name", model_name),
        "version": "",
        "config": None,
        "dependents": False,
        "files": [],
        "lengths": [],
    }
    whole.update(text)
    said = current_worker.calls().control(verb, whole, files)
    if "message" in said:
        name = current_worker.instance_name()
        raise TritonModelException(
            "%sFailed to process the request for model '%s', message: %s" % (prefix, name, said["message"])
        )
    return said


def _text_of(function: str, name: str, value: object) -> str:
    return text_of("%s: %s" % (function, name), value)
