"""One instance of a script's model, as the Python backend runs it: a request is a body with its types, an answer likewise."""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils

from . import content_types, places
from .answer import Answer, answer_of, failure_of
from .context import Context
from .script import DEFAULT_PROGRAM, Script

if TYPE_CHECKING:
    from triton_python_backend_utils import InferenceRequest, InferenceResponse

    from .defaults import DefaultInferenceHandler

# `containers/scripts/script-codec.ts` knows these, too.
_OUTPUT = "answer"
_CONTENT_TYPE = "content_type"
_ACCEPT = "accept"
_ATTRIBUTES = "custom_attributes"
_STATUS = "status"


class ScriptProgram:
    """The contract of the Python backend for scripts; frameworks say what takes the place of functions that a script leaves out."""

    defaults: DefaultInferenceHandler
    # What a body is whose type was not said.
    default_content_type = None

    def initialize(self, args: dict[str, str]) -> None:
        """Loads the script and, by it, the model."""
        parameters = {
            key: value["string_value"] for key, value in json.loads(args["model_config"]).get("parameters", {}).items()
        }
        model_dir = os.path.join(args["model_repository"])
        places.enter(model_dir, parameters)
        self._default_accept = os.environ.get("SAGEMAKER_DEFAULT_INVOCATIONS_ACCEPT", content_types.JSON)
        self._context = Context(args["model_name"], model_dir, int(parameters.get("batch_size", "1")))
        program = os.environ.get("SAGEMAKER_PROGRAM") or DEFAULT_PROGRAM
        try:
            self._script = Script(program, self.defaults, self._context)
            self._model = self._script.load(model_dir)
        except BaseException:
            # The load fails with the error; where in the script it was the container's log has in full.
            traceback.print_exc()
            raise

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Each request for itself."""
        return [_response(self._answer(request)) for request in requests]

    def _answer(self, request: InferenceRequest) -> Answer:
        try:
            said = json.loads(request.parameters())
            content_type = said.get(_CONTENT_TYPE, self.default_content_type)
            accept = said.get(_ACCEPT)
            if not accept or accept == content_types.ANY:
                accept = self._default_accept
            self._context.begin(_headers(said))
            data = request.inputs()[0].as_numpy().reshape(-1)[0]
            if content_type in content_types.UTF8_TYPES:
                data = data.decode("utf-8")
            result = self._script.transform(self._model, data, content_type, accept)
            return answer_of(result, accept, self._context.request_processor[0].get_response_status_code())
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a script raises is the answer to its request
            traceback.print_exc()
            return failure_of(error)


def _headers(said: dict[str, str]) -> dict[str, str]:
    """The request's headers as the toolkit spells them."""
    names = {_CONTENT_TYPE: "Content-Type", _ACCEPT: "Accept", _ATTRIBUTES: "X-Amzn-SageMaker-Custom-Attributes"}
    return {name: said[key] for key, name in names.items() if key in said}


def _response(answer: Answer) -> InferenceResponse:
    body = np.empty((1,), np.object_)
    body[0] = answer.body
    parameters = {_STATUS: answer.status}
    if answer.content_type is not None:
        parameters[_CONTENT_TYPE] = answer.content_type
    return pb_utils.InferenceResponse([pb_utils.Tensor(_OUTPUT, body)], parameters=parameters)


def leave_no_trace(module: str, file: str) -> None:
    """Takes the program that the worker loaded out of what scripts can import: theirs may have the same name."""
    sys.modules.pop(module, None)
    directory = os.path.dirname(os.path.abspath(file))
    sys.path[:] = [path for path in sys.path if path != directory]
