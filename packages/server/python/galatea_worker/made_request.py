"""Requests that a model makes for other models, and what it says and asks of them: loads, unloads, readiness."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import current_worker, wire
from .objects import Tensor, TritonModelException, check_limit, check_parameters
from .signatures import MODULE, Mismatch, checked, enumeration, text_of

if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from .calls import Calls, ResponseIterator
    from .objects import InferenceRequest, InferenceResponse


_MISSING = object()


def _list(value: object) -> list[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise Mismatch
    return list(value)


def _number(value: object, most: int, least: int = 0) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__") or not least <= value.__index__() <= most:
        raise Mismatch
    return value.__index__()


def _version(value: object) -> str:
    """Returns the version for the wire: '' for the highest ready one. A number without a version is sent unchanged."""
    value = _number(value, 2**63 - 1, -(2**63))
    return "" if value == -1 else str(value)


MemoryType = enumeration("MemoryType", ("TRITONSERVER_MEMORY_GPU", "TRITONSERVER_MEMORY_CPU"))


class PreferredMemory:
    """Where the outputs of a call should lie. All memory here is the machine's: GPU is taken and not heeded."""

    __module__ = MODULE
    __slots__ = ("_type", "_device_id")

    @checked(
        "c_python_backend_utils.PreferredMemory("
        "preferred_memory_type: triton::backend::python::PreferredMemory::MemoryType, preferred_device_id: int = 0)"
    )
    def __init__(self, preferred_memory_type: Any, preferred_device_id: int = 0) -> None:
        if not isinstance(preferred_memory_type, MemoryType):
            raise Mismatch
        self._type = preferred_memory_type
        self._device_id = _number(preferred_device_id, 2**63 - 1, -(2**63))


class InferenceTrace:
    """A request's trace, to be handed on to the requests that it causes."""

    __module__ = MODULE
    __slots__ = ()

    def get_context(self) -> str | None:
        """The trace's context as JSON text; None without one."""
        return None


_NO_MEMORY = PreferredMemory(MemoryType.TRITONSERVER_MEMORY_CPU)
_NO_TRACE = InferenceTrace()
_REQUEST = (
    "c_python_backend_utils.InferenceRequest(request_id: str = '', correlation_id: object = 0,"
    " inputs: List[triton::backend::python::PbTensor], requested_output_names: List[str], model_name: str,"
    " model_version: int = -1, flags: int = 0, timeout: int = 0,"
    " preferred_memory: c_python_backend_utils.PreferredMemory = %r,"
    " trace: c_python_backend_utils.InferenceTrace = %r, parameters: object = None)"
) % (_NO_MEMORY, _NO_TRACE)


@checked(_REQUEST, "__init__")
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
    preferred_memory: PreferredMemory | None = _NO_MEMORY,
    trace: InferenceTrace | None = _NO_TRACE,
    parameters: dict[str, Any] | None = None,
) -> None:
    """The constructor of pb_utils.InferenceRequest."""
    if inputs is _MISSING or requested_output_names is _MISSING or model_name is _MISSING:
        raise Mismatch
    request._model_name = text_of(model_name)
    request._wanted_version = _version(model_version)
    said = request._wire = wire.WireRequest()
    said.request_id = text_of(request_id)
    request._inputs = _list(inputs)
    if not all(tensor is None or isinstance(tensor, Tensor) for tensor in request._inputs):
        raise Mismatch
    request._requested = [text_of(name) for name in _list(requested_output_names)]
    said.flags = _number(flags, 0xFFFFFFFF)
    said.timeout_us = _number(timeout, 2**64 - 1)
    if not isinstance(preferred_memory, (PreferredMemory, type(None))) or not isinstance(
        trace, (InferenceTrace, type(None))
    ):
        raise Mismatch
    said.correlation = _correlation(correlation_id)
    said.parameters = _parameters(parameters)
    if None in request._inputs:
        raise TritonModelException(
            "Input tensor for request with id '%s' and model name '%s' should not be empty."
            % (said.request_id, request._model_name)
        )
    if "" in request._requested:
        raise TritonModelException(
            "Requested output name for request with id '%s' and model name '%s' should not be empty."
            % (said.request_id, request._model_name)
        )
    request._place = None
    request._reply = None
    request._answers = None
    request._sender = None


def _correlation(value: object) -> int | str:
    if value is None:
        raise Mismatch
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
    check_parameters(parameters)
    check_limit("the request has %d parameters", len(parameters), wire.PARAMETERS_MAX)
    for value in parameters.values():
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


def execute_awaited(request: InferenceRequest, decoupled: bool) -> asyncio.Task[InferenceResponse | ResponseIterator]:
    """See InferenceRequest.async_exec."""
    import asyncio

    loop = asyncio.get_running_loop()
    _calls_of(request)
    return current_worker.awaited_calls().begin(loop, request, current_worker.calling_execution(), decoupled)


def _calls_of(request: InferenceRequest) -> Calls:
    if request._place is not None:
        raise TritonModelException("The request came to the model: one that the model makes can be executed.")
    if not current_worker.may_call():
        raise TritonModelException("BLS is only supported during the 'execute' function.")
    return current_worker.calls()


@checked("(model_name: str, config: str = '', files: object = None) -> None")
def load_model(model_name: str, config: str = "", files: dict[str, bytes] | None = None) -> None:
    """Loads a model of the server's repositories by name, `config` as JSON in place of its own, with `files` ('file:<path>' to bytes)."""
    contents = {}
    for path, content in (files or {}).items():
        if not isinstance(content, bytes):
            raise TypeError("Object of type '%s' is not an instance of 'bytes'" % type(content).__name__)
        contents[text_of(path)] = content
    config = text_of(config)
    text = {
        "config": config or None,
        "files": list(contents),
        "lengths": [len(content) for content in contents.values()],
    }
    _control(1, model_name, text, list(contents.values()), "Failed to load model: ")


@checked("(model_name: str, unload_dependents: bool = False) -> None")
def unload_model(model_name: str, unload_dependents: bool = False) -> None:
    """Unloads a model by name; what it executes ends first. With `unload_dependents` also the steps that only it brought in."""
    _control(2, model_name, {"dependents": bool(unload_dependents)}, [], "Failed to unload model: ")


@checked("(model_name: str, model_version: str = '') -> bool")
def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Whether a model can be called now."""
    text = {"version": text_of(model_version)}
    return _control(3, model_name, text, [], "Failed to check model readiness: ")["ready"]


def _control(verb: int, model_name: str, text: dict[str, Any], files: list[bytes], prefix: str) -> dict[str, Any]:
    whole = {
        "model": text_of(model_name),
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
