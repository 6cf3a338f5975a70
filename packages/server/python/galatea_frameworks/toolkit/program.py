"""Runs one instance of a script's model for the Python backend. Requests and responses are HTTP bodies with content types."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils

from . import content_types, handler_service, import_paths, joined_rows, streams
from .context import Context
from .script import DEFAULT_PROGRAM, Script
from .script_response import ScriptResponse, error_response, to_response

if TYPE_CHECKING:
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse

    from .defaults import DefaultInferenceHandler

# Tensor names. They must be the same as in `container-runtimes/scripts/script-codec.ts`.
_OUTPUT = "answer"
_CONTENT_TYPE = "content_type"
_ACCEPT = "accept"
_ATTRIBUTES = "custom_attributes"
_SESSION = "session_id"
_STATUS = "status"
_HEADERS = "headers"
_REQUESTED = "asks"
_EXECUTION_PARAMETERS = "execution_parameters"

_NOT_FOUND = 404


class ScriptProgram:
    """The Python backend's model class for scripts. Subclasses for frameworks set the default functions."""

    defaults: DefaultInferenceHandler
    # Content type of a request body without a Content-Type header.
    default_content_type = None

    def initialize(self, args: dict[str, str]) -> None:
        """Imports the script and calls its model_fn."""
        parameters = {
            key: value["string_value"] for key, value in json.loads(args["model_config"]).get("parameters", {}).items()
        }
        model_dir = os.path.join(args["model_repository"])
        import_paths.enter(model_dir, parameters)
        self._default_accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", content_types.JSON)
        self._context = Context(args["model_name"], model_dir, int(parameters.get("batch_size", "1")))
        self._handler = self._script = None
        policy = json.loads(args["model_config"]).get("model_transaction_policy", {})
        self._streams_chunks = bool(policy.get("decoupled", False))
        self._has_warned = False
        try:
            self._load(model_dir)
        except BaseException as error:
            import_paths.explain(error)
            # The load fails with this error. The full traceback is printed only to the container's log.
            traceback.print_exc()
            raise

    def _load(self, model_dir: str) -> None:
        handler = handler_service.service_name(os.environ.get("SAGEMAKER_HANDLER"))
        if handler is not None:
            self._handler = handler_service.HandlerService(handler, self._context)
            return
        program = os.environ.get("SAGEMAKER_PROGRAM") or DEFAULT_PROGRAM
        self._script = Script(program, self.defaults, self._context)
        self._model = self._script.load(model_dir)

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Handles requests one by one. Only predictions are made together, if the script supports that (`joins_rows`)."""
        pending = [_PendingRequest(request) for request in requests]
        if self._streams_chunks:
            for one in pending:
                self._send(one)
            return None
        if self._handler is not None:
            return self._handled(pending)
        if len(pending) > 1 and self._script.joins_rows:
            self._predict_together(pending)
        return [_response(one.response or self._respond(one)) for one in pending]

    def _handle(self, request: _PendingRequest) -> ScriptResponse:
        self._handled([request])
        return request.response or ScriptResponse(b"", None, _NOT_FOUND)

    def _handled(self, pending: list[_PendingRequest]) -> list[InferenceResponse]:
        """Calls a handler service with all requests at once. A handler service has no execution parameters for batch transform jobs."""
        given = [one for one in pending if not one.requests_execution_parameters]
        if given:
            self._context.begin(*(one.headers for one in given))
            for one, response in zip(given, self._handler.handle([one.body() for one in given])):
                one.response = response
        return [_response(one.response or ScriptResponse(b"", None, _NOT_FOUND)) for one in pending]

    def _execution_parameters(self) -> ScriptResponse:
        if not self._script.has_execution_parameters:
            return ScriptResponse(b"", None, _NOT_FOUND)
        return to_response(self._script.execution_parameters(), content_types.JSON, 200)

    def _respond(self, request: _PendingRequest) -> ScriptResponse:
        response_context = None
        try:
            if request.requests_execution_parameters:
                self._context.begin({})
                return self._execution_parameters()
            self._begin(request)
            response_context = self._context.request_processor[0]
            result = self._result(request)
            chunks = streams.to_chunks(result, request.accept)
            if chunks is None:
                response = to_response(result, request.accept, response_context.get_response_status_code())
            else:
                self._warn_about_iterator()
                response = streams.joined(chunks, response_context.get_response_status_code())
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
            response = _failed(error)
        if response_context is not None:
            response.headers = response_context.get_response_headers()
        return response

    def _result(self, request: _PendingRequest) -> Any:
        if request.has_prediction:
            return self._script.call(self._script.output_fn, request.prediction, request.accept)
        return self._script.transform(self._model, request.data, request.content_type, request.accept)

    def _warn_about_iterator(self) -> None:
        """Warns once about a script that returns an iterator without declaring it. Without the declaration, all chunks are sent in one
        response."""
        if not self._has_warned:
            self._has_warned = True
            print(
                "the script returned an iterator, which is sent as a whole: with `streams = True` in the script, "
                "its chunks are sent as they are produced",
                flush=True,
            )

    def _send(self, request: _PendingRequest) -> None:
        """Sends a response of a decoupled model.

        If the script returns an iterator, the response is sent in chunks. The first chunk contains status and headers.
        """
        sender = request.sender()
        chunks = None
        try:
            response, chunks = self._first(request)
            sender.send(_response(response))
            for chunk in chunks or ():
                if sender.is_cancelled():
                    break
                sender.send(_response(ScriptResponse(chunk, None, 200)))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an error after the first chunk ends the response
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(_failed(error).body.decode("utf-8"))))
        finally:
            _close(chunks)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _first(self, request: _PendingRequest) -> tuple[ScriptResponse, streams.Chunks | None]:
        """Returns the response and None. For an iterator, returns the first chunk and an iterator over the others."""
        if self._handler is not None or request.requests_execution_parameters:
            return (self._respond(request) if self._handler is None else self._handle(request)), None
        response_context = chunks = None
        try:
            self._begin(request)
            response_context = self._context.request_processor[0]
            result = self._result(request)
            chunks = streams.to_chunks(result, request.accept)
            if chunks is None:
                response = to_response(result, request.accept, response_context.get_response_status_code())
            else:
                body = next(chunks, b"")
                response = ScriptResponse(body, chunks.content_type, response_context.get_response_status_code())
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
            _close(chunks)
            response, chunks = _failed(error), None
        if response_context is not None:
            response.headers = response_context.get_response_headers()
        return response, chunks

    def _begin(self, request: _PendingRequest) -> None:
        """Sets the context for this request. Raises the errors of decoding the request's body."""
        self._context.begin(request.headers)
        request.read(self.default_content_type, self._default_accept)

    def _predict_together(self, pending: list[_PendingRequest]) -> None:
        """Makes one prediction for all requests whose data can be concatenated.

        If the prediction fails, each request is run alone, so that only the faulty one fails.
        """
        batch = []
        for one in pending:
            if one.requests_execution_parameters:
                continue
            try:
                self._begin(one)
                batch.append((one, self._script.call(self._script.input_fn, one.data, one.content_type)))
            except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
                one.response = _failed(error)
        given = [data for _, data in batch]
        whole = joined_rows.joined(given) if len(batch) > 1 else None
        if whole is None:
            return
        try:
            predicted = self._script.call(self._script.predict_fn, whole, self._model)
        except Exception:  # noqa: BLE001 - each request is run again alone, which reports the error
            return
        chunks = joined_rows.split(predicted, [len(data) for data in given])
        for (one, _), part in zip(batch, chunks or ()):
            one.prediction, one.has_prediction = part, True


class _PendingRequest:
    """A request and the progress of its response."""

    def __init__(self, request: InferenceRequest) -> None:
        self._request = request
        self._parameters = json.loads(request.parameters())
        self.headers = _headers(self._parameters)
        self.content_type = self.accept = self.data = self.prediction = self.response = None
        self.has_prediction = False
        self.requests_execution_parameters = self._parameters.get(_REQUESTED) == _EXECUTION_PARAMETERS

    def sender(self) -> Any:
        """Returns the response sender of a decoupled model."""
        return self._request.get_response_sender()

    def body(self) -> bytes:
        """Returns the received body."""
        return self._request.inputs()[0].as_numpy().reshape(-1)[0]

    def read(self, default_content_type: str | None, default_accept: str) -> None:
        """Decodes the body for the script: text for text types, otherwise bytes."""
        self.content_type = self._parameters.get(_CONTENT_TYPE, default_content_type)
        self.accept = self._parameters.get(_ACCEPT)
        if not self.accept or self.accept == content_types.ANY:
            self.accept = default_accept
        data = self.body()
        self.data = data.decode("utf-8") if self.content_type in content_types.UTF8_TYPES else data


def _close(chunks: streams.Chunks | None) -> None:
    if chunks is None:
        return
    try:
        chunks.close()
    except Exception as error:  # noqa: BLE001 - a closed generator cannot change the response
        traceback.print_exception(type(error), error, error.__traceback__)


def _failed(error: BaseException) -> ScriptResponse:
    """Returns the toolkit's error response. The full traceback is printed only to the container's log."""
    import_paths.explain(error)
    traceback.print_exception(type(error), error, error.__traceback__)
    return error_response(error)


def _headers(parameters: dict[str, str]) -> dict[str, str]:
    """Returns the headers of the request, with the toolkit's spelling of their names."""
    names = {
        _CONTENT_TYPE: "Content-Type",
        _ACCEPT: "Accept",
        _ATTRIBUTES: "X-Amzn-SageMaker-Custom-Attributes",
        _SESSION: "X-Amzn-SageMaker-Session-Id",
    }
    return {name: parameters[key] for key, name in names.items() if key in parameters}


def _response(response: ScriptResponse) -> InferenceResponse:
    body = np.empty((1,), np.object_)
    body[0] = response.body
    parameters = {_STATUS: response.status}
    if response.content_type is not None:
        parameters[_CONTENT_TYPE] = response.content_type
    if response.headers:
        try:
            parameters[_HEADERS] = json.dumps({str(name): str(value) for name, value in response.headers.items()})
        except Exception as error:  # noqa: BLE001 - conversions of the script's objects run its code
            return _response(_failed(error))
    return pb_utils.InferenceResponse([pb_utils.Tensor(_OUTPUT, body)], parameters=parameters)


def remove_module(module: str, file: str) -> None:
    """Removes the worker's own program from the imported modules, because a script may have the same module name."""
    sys.modules.pop(module, None)
    directory = os.path.dirname(os.path.abspath(file))
    sys.path[:] = [path for path in sys.path if path != directory]
