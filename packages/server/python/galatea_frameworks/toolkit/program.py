"""Runs one instance of a script's model for the Python backend. Requests and responses are HTTP bodies with content types."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils

from . import content_types, handler_service, joined_rows, places, streams
from .answer import ScriptResponse, error_response, to_response
from .context import Context
from .script import DEFAULT_PROGRAM, Script

if TYPE_CHECKING:
    from typing import Any

    from triton_python_backend_utils import InferenceRequest, InferenceResponse

    from .defaults import DefaultInferenceHandler

# Tensor names, the same as in `container-runtimes/scripts/script-codec.ts`.
_OUTPUT = "answer"
_CONTENT_TYPE = "content_type"
_ACCEPT = "accept"
_ATTRIBUTES = "custom_attributes"
_SESSION = "session_id"
_STATUS = "status"
_HEADERS = "headers"
_ASKS = "asks"
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
        places.enter(model_dir, parameters)
        self._default_accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", content_types.JSON)
        self._context = Context(args["model_name"], model_dir, int(parameters.get("batch_size", "1")))
        self._handler = self._script = None
        policy = json.loads(args["model_config"]).get("model_transaction_policy", {})
        self._sends_parts = bool(policy.get("decoupled", False))
        self._has_noted = False
        try:
            self._load(model_dir)
        except BaseException as error:
            places.explain(error)
            # The load fails with this error. The full traceback is printed to the container's log.
            traceback.print_exc()
            raise

    def _load(self, model_dir: str) -> None:
        handler = handler_service.named(os.environ.get("SAGEMAKER_HANDLER"))
        if handler is not None:
            self._handler = handler_service.HandlerService(handler, self._context)
            return
        program = os.environ.get("SAGEMAKER_PROGRAM") or DEFAULT_PROGRAM
        self._script = Script(program, self.defaults, self._context)
        self._model = self._script.load(model_dir)

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Handles requests one by one, except that predictions are made together when the script supports it (`joins_rows`)."""
        asked = [_Asked(request) for request in requests]
        if self._sends_parts:
            for one in asked:
                self._send(one)
            return None
        if self._handler is not None:
            return self._handled(asked)
        if len(asked) > 1 and self._script.joins_rows:
            self._predict_together(asked)
        return [_response(one.answer or self._answer(one)) for one in asked]

    def _handle(self, asked: _Asked) -> ScriptResponse:
        self._handled([asked])
        return asked.answer or ScriptResponse(b"", None, _NOT_FOUND)

    def _handled(self, asked: list[_Asked]) -> list[InferenceResponse]:
        """Calls a handler service with all requests at once. A handler service has no execution parameters."""
        given = [one for one in asked if not one.asks_execution_parameters]
        if given:
            self._context.begin(*(one.headers for one in given))
            for one, answer in zip(given, self._handler.answer([one.body() for one in given])):
                one.answer = answer
        return [_response(one.answer or ScriptResponse(b"", None, _NOT_FOUND)) for one in asked]

    def _execution_parameters(self) -> ScriptResponse:
        if not self._script.has_execution_parameters:
            return ScriptResponse(b"", None, _NOT_FOUND)
        return to_response(self._script.execution_parameters(), content_types.JSON, 200)

    def _answer(self, asked: _Asked) -> ScriptResponse:
        said = None
        try:
            if asked.asks_execution_parameters:
                self._context.begin({})
                return self._execution_parameters()
            self._begin(asked)
            said = self._context.request_processor[0]
            result = self._result(asked)
            parts = streams.to_chunks(result, asked.accept)
            if parts is None:
                answer = to_response(result, asked.accept, said.get_response_status_code())
            else:
                self._note()
                answer = streams.joined(parts, said.get_response_status_code())
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a script raises is the answer to its request
            answer = _failed(error)
        if said is not None:
            answer.headers = said.get_response_headers()
        return answer

    def _result(self, asked: _Asked) -> Any:
        if asked.has_prediction:
            return self._script.call(self._script.output_fn, asked.prediction, asked.accept)
        return self._script.transform(self._model, asked.data, asked.content_type, asked.accept)

    def _note(self) -> None:
        """Warns once about a script that returns an iterator but does not declare it. Its responses are sent as a whole."""
        if not self._has_noted:
            self._has_noted = True
            print(
                "the script returned an iterator, which is sent as a whole: with `streams = True` in the script, "
                "its chunks are sent as they are produced",
                flush=True,
            )

    def _send(self, asked: _Asked) -> None:
        """Sends a response of a decoupled model.

        If the script returns an iterator, the response is sent in chunks, of which the first has status and headers.
        """
        sender = asked.sender()
        parts = None
        try:
            answer, parts = self._first(asked)
            sender.send(_response(answer))
            for part in parts or ():
                if sender.is_cancelled():
                    break
                sender.send(_response(ScriptResponse(part, None, 200)))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - what is raised behind the first part ends the answer
            sender.send(pb_utils.InferenceResponse(error=pb_utils.TritonError(_failed(error).body.decode("utf-8"))))
        finally:
            _close(parts)
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)

    def _first(self, asked: _Asked) -> tuple[ScriptResponse, streams.Chunks | None]:
        """Returns the response; for an iterator, the first chunk and the iterator of the others."""
        if self._handler is not None or asked.asks_execution_parameters:
            return (self._answer(asked) if self._handler is None else self._handle(asked)), None
        said = parts = None
        try:
            self._begin(asked)
            said = self._context.request_processor[0]
            result = self._result(asked)
            parts = streams.to_chunks(result, asked.accept)
            if parts is None:
                answer = to_response(result, asked.accept, said.get_response_status_code())
            else:
                body = next(parts, b"")
                answer = ScriptResponse(body, parts.content_type, said.get_response_status_code())
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            _close(parts)
            answer, parts = _failed(error), None
        if said is not None:
            answer.headers = said.get_response_headers()
        return answer, parts

    def _begin(self, asked: _Asked) -> None:
        """Sets the context for this request. Raises errors of the request's body."""
        self._context.begin(asked.headers)
        asked.read(self.default_content_type, self._default_accept)

    def _predict_together(self, asked: list[_Asked]) -> None:
        """Makes one prediction for all requests whose data can be concatenated.

        If it fails, each request is run alone, so that only the faulty one fails.
        """
        batch = []
        for one in asked:
            if one.asks_execution_parameters:
                continue
            try:
                self._begin(one)
                batch.append((one, self._script.call(self._script.input_fn, one.data, one.content_type)))
            except Exception as error:  # noqa: BLE001 - as above
                one.answer = _failed(error)
        given = [data for _, data in batch]
        whole = joined_rows.joined(given) if len(batch) > 1 else None
        if whole is None:
            return
        try:
            predicted = self._script.call(self._script.predict_fn, whole, self._model)
        except Exception:  # noqa: BLE001 - told when it happens again
            return
        parts = joined_rows.split(predicted, [len(data) for data in given])
        for (one, _), part in zip(batch, parts or ()):
            one.prediction, one.has_prediction = part, True


class _Asked:
    """A request and the progress of its response."""

    def __init__(self, request: InferenceRequest) -> None:
        self._request = request
        self._said = json.loads(request.parameters())
        self.headers = _headers(self._said)
        self.content_type = self.accept = self.data = self.prediction = self.answer = None
        self.has_prediction = False
        self.asks_execution_parameters = self._said.get(_ASKS) == _EXECUTION_PARAMETERS

    def sender(self) -> Any:
        """Returns the response sender of a decoupled model."""
        return self._request.get_response_sender()

    def body(self) -> bytes:
        """Returns the received body."""
        return self._request.inputs()[0].as_numpy().reshape(-1)[0]

    def read(self, default_content_type: str | None, default_accept: str) -> None:
        """Decodes the body for the script: text for text types, otherwise bytes."""
        self.content_type = self._said.get(_CONTENT_TYPE, default_content_type)
        self.accept = self._said.get(_ACCEPT)
        if not self.accept or self.accept == content_types.ANY:
            self.accept = default_accept
        data = self.body()
        self.data = data.decode("utf-8") if self.content_type in content_types.UTF8_TYPES else data


def _close(parts: streams.Chunks | None) -> None:
    if parts is None:
        return
    try:
        parts.close()
    except Exception as error:  # noqa: BLE001 - nobody waits for what a generator says at its end
        traceback.print_exception(type(error), error, error.__traceback__)


def _failed(error: BaseException) -> ScriptResponse:
    """Returns the toolkit's error response. The full traceback is printed to the container's log."""
    places.explain(error)
    traceback.print_exception(type(error), error, error.__traceback__)
    return error_response(error)


def _headers(said: dict[str, str]) -> dict[str, str]:
    """Returns the headers of the request, with the toolkit's spelling of their names."""
    names = {
        _CONTENT_TYPE: "Content-Type",
        _ACCEPT: "Accept",
        _ATTRIBUTES: "X-Amzn-SageMaker-Custom-Attributes",
        _SESSION: "X-Amzn-SageMaker-Session-Id",
    }
    return {name: said[key] for key, name in names.items() if key in said}


def _response(answer: ScriptResponse) -> InferenceResponse:
    body = np.empty((1,), np.object_)
    body[0] = answer.body
    parameters = {_STATUS: answer.status}
    if answer.content_type is not None:
        parameters[_CONTENT_TYPE] = answer.content_type
    if answer.headers:
        try:
            parameters[_HEADERS] = json.dumps({str(name): str(value) for name, value in answer.headers.items()})
        except Exception as error:  # noqa: BLE001 - they are the script's objects
            return _response(_failed(error))
    return pb_utils.InferenceResponse([pb_utils.Tensor(_OUTPUT, body)], parameters=parameters)


def remove_module(module: str, file: str) -> None:
    """Removes the worker's own program from the imported modules, because a script may have the same module name."""
    sys.modules.pop(module, None)
    directory = os.path.dirname(os.path.abspath(file))
    sys.path[:] = [path for path in sys.path if path != directory]
