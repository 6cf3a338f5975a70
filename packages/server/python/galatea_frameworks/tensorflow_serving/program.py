"""Runs one instance of an archive for the Python backend. Requests and responses are HTTP bodies with content types."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import numpy as np
import triton_python_backend_utils as pb_utils
from galatea_worker import heap, reading_only

from .calls import run_together
from .models import Models
from .rest import RestListener
from .script import Context, Script
from .serving_request import RequestBody, ScriptedRequest, ServingRequest

if TYPE_CHECKING:
    from triton_python_backend_utils import InferenceRequest, InferenceResponse

    from .serving_response import ServingResponse

# Tensor names. They must be the same as in `container-runtimes/scripts/script-codec.ts`.
_OUTPUT = "answer"
_CONTENT_TYPE = "content_type"
_ACCEPT = "accept"
_ATTRIBUTES = "custom_attributes"
_STATUS = "status"

# Number of runs after which free memory is returned to the system, as in `tensorflow/program.py`.
_RUNS_TO_TRIM = 2


class ServingProgram:
    """The Python backend's model class for archives of SavedModels."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads all models and versions of the archive."""
        root = args["model_repository"]
        parameters = {
            key: value["string_value"] for key, value in json.loads(args["model_config"])["parameters"].items()
        }
        self._rows_max = int(parameters["rows_max"])
        script = os.path.join(root, "code", "inference.py")
        has_script = os.path.isfile(script)
        if not has_script:
            # Called before TensorFlow starts a thread, because the rules apply only to the calling thread and to threads that are started
            # later.
            reading_only.enter(root)
        threads = int(parameters["intra_threads"]), int(parameters["inter_threads"])
        served_name = args["model_name"] if parameters["is_multi_model"] == "true" else None
        self._models = Models(root, parameters["default_model"], served_name, threads)
        self._runs_to_trim = _RUNS_TO_TRIM
        self._script = None
        if has_script:
            Context.timeout = int(parameters["wait_seconds"])
            self._rest = _listen(self._models)
            self._script = Script(script, parameters["packages_dir"])
        heap.trim()

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Executes requests. If batching is enabled, requests with compatible calls run together."""
        pending = [self._parse(request) for request in requests]
        if self._rows_max > 0:
            waiting = [one for one in pending if one.call is not None]
            results = run_together([one.call for one in waiting], self._rows_max)
            for one, response in zip(waiting, results):
                one.set_result(response)
        else:
            for one in pending:
                one.run()
        if self._runs_to_trim > 0:
            self._runs_to_trim -= 1
            if self._runs_to_trim == 0:
                heap.trim()
        return [_response(one.response) for one in pending]

    def _parse(self, request: InferenceRequest) -> ServingRequest:
        given = json.loads(request.parameters())
        body = request.inputs()[0].as_numpy().reshape(-1)[0]
        request_body = RequestBody(body, *(given.get(name, "") for name in (_CONTENT_TYPE, _ACCEPT, _ATTRIBUTES)))
        if self._script is None:
            return ServingRequest(request_body, self._models)
        return ScriptedRequest(request_body, self._models, self._script, self._rest)


def _listen(models: Models) -> str:
    """Starts the REST API for the archive's script and returns its address."""
    # Without these variables, requests to local addresses would use the proxy that the container's variables name.
    for name in ("no_proxy", "NO_PROXY"):
        os.environ[name] = ",".join(filter(None, (os.environ.get(name), "localhost", "127.0.0.1")))
    try:
        return RestListener(models).base
    except OSError as error:
        print("no port can be opened for context.rest_uri, which a script's handler would call: %s" % error, flush=True)
        return "http://localhost:0"


def _response(response: ServingResponse) -> InferenceResponse:
    body = np.empty((1,), np.object_)
    body[0] = response.body
    parameters = {_STATUS: response.status, _CONTENT_TYPE: response.content_type}
    return pb_utils.InferenceResponse([pb_utils.Tensor(_OUTPUT, body)], parameters=parameters)
