"""pb_utils.InferenceRequest: a request of a batch, or a request to another model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from . import current_worker, wire
from .objects import CallRequest, Tensor, TritonModelException, check_limit, check_parameters
from .response_sender import InferenceResponseSender, Reply
from .signatures import MODULE, ArgumentMismatch, checked, enumeration, text_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence
    from typing import Any

    from .calls import Calls, ResponseIterator
    from .objects import InferenceResponse


_MISSING = object()
_RELEASE_RESCHEDULE = 2


def _list(value: object) -> list[Any]:
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise ArgumentMismatch
    return list(value)


def _number(value: object, most: int, least: int = 0) -> int:
    if isinstance(value, bool) or not hasattr(type(value), "__index__") or not least <= value.__index__() <= most:
        raise ArgumentMismatch
    return value.__index__()


def _version(value: object) -> str:
    """Returns the version for a frame: "" for the highest ready one. Other texts are returned unchanged."""
    value = _number(value, 2**63 - 1, -(2**63))
    return "" if value == -1 else str(value)


MemoryType = enumeration("MemoryType", ("TRITONSERVER_MEMORY_GPU", "TRITONSERVER_MEMORY_CPU"))


class PreferredMemory:
    """The preferred memory for the outputs of a call. All memory is the machine's main memory; GPU is accepted and ignored."""

    __module__ = MODULE
    __slots__ = ("_type", "_device_id")

    @checked(
        "c_python_backend_utils.PreferredMemory("
        "preferred_memory_type: triton::backend::python::PreferredMemory::MemoryType, preferred_device_id: int = 0)"
    )
    def __init__(self, preferred_memory_type: Any, preferred_device_id: int = 0) -> None:
        if not isinstance(preferred_memory_type, MemoryType):
            raise ArgumentMismatch
        self._type = preferred_memory_type
        self._device_id = _number(preferred_device_id, 2**63 - 1, -(2**63))


class InferenceTrace:
    """The trace of a request, which is passed on to the requests that it causes."""

    __module__ = MODULE
    __slots__ = ()

    def get_context(self) -> str | None:
        """Returns the context of the trace as JSON text; None if there is none."""
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


def _correlation(value: object) -> int | str:
    if value is None:
        raise ArgumentMismatch
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


def _check_names(made: CallRequest) -> None:
    if None in made.inputs:
        raise TritonModelException(
            "Input tensor for request with id '%s' and model name '%s' should not be empty."
            % (made.request_id, made.model_name)
        )
    if "" in made.requested:
        raise TritonModelException(
            "Requested output name for request with id '%s' and model name '%s' should not be empty."
            % (made.request_id, made.model_name)
        )


class InferenceRequest:
    """One request of a batch, or a request that the model sends to another model."""

    # `_wire` is the decoded request (`wire.WireRequest`), whose fields are read on demand, because most models use only the tensors. For a
    # request that the model has created, `_wire` is a CallRequest, and there is no `_request_key`.
    __module__ = MODULE
    __slots__ = ("_inputs", "_wire", "_requested", "_request_key", "_reply", "_responses", "_sender")

    @checked(_REQUEST)
    def __init__(
        self,
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
        if inputs is _MISSING or requested_output_names is _MISSING or model_name is _MISSING:
            raise ArgumentMismatch
        made = CallRequest()
        made.model_name = text_of(model_name)
        made.version = _version(model_version)
        made.request_id = text_of(request_id)
        made.inputs = _list(inputs)
        if not all(tensor is None or isinstance(tensor, Tensor) for tensor in made.inputs):
            raise ArgumentMismatch
        made.requested = [text_of(name) for name in _list(requested_output_names)]
        made.flags = _number(flags, 0xFFFFFFFF)
        made.timeout_us = _number(timeout, 2**64 - 1)
        if not isinstance(preferred_memory, (PreferredMemory, type(None))) or not isinstance(
            trace, (InferenceTrace, type(None))
        ):
            raise ArgumentMismatch
        made.correlation = _correlation(correlation_id)
        made.parameters = _parameters(parameters)
        _check_names(made)
        self._wire = made
        self._inputs = made.inputs
        self._requested = made.requested
        self._request_key = None
        self._reply = None
        self._responses = None
        self._sender = None

    def inputs(self) -> list[Tensor]:
        """Returns the input tensors in a new list."""
        return list(self._inputs)

    def request_id(self) -> str:
        """Returns the request id of the client; "" if there is none."""
        return self._wire.request_id

    def correlation_id(self) -> int | str:
        """Returns the id of the request's sequence, an int or str; 0 if there is none."""
        return self._wire.correlation

    def flags(self) -> int:
        """Returns the flags, which are TRITONSERVER_REQUEST_FLAG_* bits."""
        return self._wire.flags

    def set_flags(self, flags: int) -> None:
        """Sets the flags."""
        self._wire.flags = flags

    def timeout(self) -> int:
        """Returns the timeout in microseconds; 0 if there is none."""
        return self._wire.timeout_us

    def parameters(self) -> str:
        """Returns the parameters of the request as JSON text; "{}" if there are none."""
        return self._wire.parameters or "{}"

    def requested_output_names(self) -> set[str]:
        """Returns the names of the outputs that the client requests, as a set."""
        return set(self._requested)

    def is_cancelled(self) -> bool:
        """Returns whether the request was cancelled. Its response is then dropped, so the model may skip the computation."""
        return self._request_key is not None and current_worker.is_request_cancelled(*self._request_key)

    def trace(self) -> InferenceTrace:
        """Returns the trace of the request. Traces are not implemented, so the trace has no context."""
        return InferenceTrace()

    def get_response_sender(self) -> InferenceResponseSender:
        """Returns the sender for this request's response, which is used instead of returning the response.

        A decoupled model may send any number of responses.
        """
        if self._request_key is None:
            raise TritonModelException("The request was created by the model itself: it has no response sender.")
        if self._responses is not None:
            if self._sender is None:
                self._sender = self._responses.make_sender()
            return self._sender
        if self._reply is None:
            self._reply = Reply(self._request_key, self._wire.request_id, self._requested)
        if self._sender is None:
            self._sender = InferenceResponseSender(self._reply)
        return self._sender

    def set_release_flags(self, flags: int) -> None:
        """Raises TritonModelException for TRITONSERVER_REQUEST_RELEASE_RESCHEDULE, because rescheduling is not implemented."""
        if flags == _RELEASE_RESCHEDULE:
            raise TritonModelException("pb_utils.InferenceRequest.set_release_flags() is not supported yet")

    @checked("(self: c_python_backend_utils.InferenceRequest, decoupled: bool = False) -> object")
    def exec(self, decoupled: bool = False) -> InferenceResponse | ResponseIterator:
        """Calls the model and waits for the InferenceResponse, which may be an error.

        With `decoupled`, returns an iterator over any number of responses.
        """
        calls = self._calls()
        call = calls.open(self._wire, current_worker.calling_execution(), decoupled)
        if decoupled:
            from .calls import ResponseIterator

            return ResponseIterator(calls, call)
        try:
            return calls.take(call)
        except BaseException:
            calls.drop(call)
            raise

    @checked("(self: c_python_backend_utils.InferenceRequest, decoupled: bool = False) -> object")
    def async_exec(self, decoupled: bool = False) -> asyncio.Task[InferenceResponse | ResponseIterator]:
        """Starts the call at once and returns a future of its response."""
        import asyncio

        loop = asyncio.get_running_loop()
        self._calls()
        execution_id = current_worker.calling_execution()
        return current_worker.awaited_calls().begin(loop, self._wire, execution_id, decoupled)

    def _calls(self) -> Calls:
        if self._request_key is not None:
            raise TritonModelException(
                "The request is the one that the model received: only requests that the model creates can be executed."
            )
        if not current_worker.may_call():
            raise TritonModelException("BLS is only supported during the 'execute' function.")
        return current_worker.calls()


def decode_request(
    decoded: wire.WireRequest, inputs: list[Tensor], requested: Sequence[str], request_key: tuple[int, int]
) -> InferenceRequest:
    """Creates an InferenceRequest from a decoded request. `request_key` is the id of the execution and the request's index in it."""
    request = InferenceRequest.__new__(InferenceRequest)
    request._inputs = inputs
    request._wire = decoded
    request._requested = requested
    request._request_key = request_key
    request._reply = None
    request._responses = None
    request._sender = None
    return request
