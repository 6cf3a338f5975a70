"""One instance of an archive, as the Python backend runs it: a request is a body with its types, an answer likewise."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import triton_python_backend_utils as pb_utils
from galatea_worker import heap, reading_only

from . import bodies, json_answer
from .calls import Call, run_together
from .errors import ServingError
from .models import Models
from .target import METHODS, target_of

if TYPE_CHECKING:
    from triton_python_backend_utils import InferenceRequest, InferenceResponse

# `containers/scripts/script-codec.ts` knows these, too.
_OUTPUT = "answer"
_CONTENT_TYPE = "content_type"
_ACCEPT = "accept"
_ATTRIBUTES = "custom_attributes"
_STATUS = "status"

_JSON = "application/json"
_ONE_LINE = (_JSON, "application/jsonlines")
# See `tensorflow/program.py`.
_RUNS_TO_TRIM = 2


class Answer(NamedTuple):
    """Of one request."""

    status: int
    content_type: str
    body: bytes


class ServingProgram:
    """The contract of the Python backend for archives of SavedModels."""

    def initialize(self, args: dict[str, str]) -> None:
        """Loads all models and versions of the archive."""
        root = args["model_repository"]
        said = {key: value["string_value"] for key, value in json.loads(args["model_config"])["parameters"].items()}
        self._rows_max = int(said["rows_max"])
        reading_only.enter(root)
        threads = int(said["intra_threads"]), int(said["inter_threads"])
        served_name = args["model_name"] if said["is_multi_model"] == "true" else None
        self._models = Models(root, said["default_model"], served_name, threads)
        self._runs_to_trim = _RUNS_TO_TRIM
        heap.trim()

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        """Those that fit together are run together, where batching is asked for."""
        asked = [_Asked(request, self._models) for request in requests]
        if self._rows_max > 0:
            waiting = [one for one in asked if one.call is not None]
            answers = run_together([one.call for one in waiting], self._rows_max)
            for one, answer in zip(waiting, answers):
                one.settle(answer)
        else:
            for one in asked:
                one.run()
        if self._runs_to_trim > 0:
            self._runs_to_trim -= 1
            if self._runs_to_trim == 0:
                heap.trim()
        return [_response(one.answer) for one in asked]


class _Asked:
    """A request without a script, and its answer once there is one."""

    def __init__(self, request: InferenceRequest, models: Models) -> None:
        said = json.loads(request.parameters())
        self._accept = said.get(_ACCEPT, "")
        self.call = self.answer = None
        try:
            target = target_of(said.get(_ATTRIBUTES, ""))
            body = request.inputs()[0].as_numpy().reshape(-1)[0]
            document = bodies.document_of(body, said.get(_CONTENT_TYPE, ""))
            servable = models.find(target.model or models.default, target.version)
            self.call = Call(servable, target.method or METHODS[0], document)
        except ServingError as error:
            self.settle(error)

    def run(self) -> None:
        """By itself."""
        if self.call is None:
            return
        try:
            self.settle(self.call.run())
        except ServingError as error:
            self.settle(error)

    def settle(self, answer: bytes | ServingError) -> None:
        """What the request is answered with."""
        status = 200
        if isinstance(answer, ServingError):
            status, answer = answer.status, json_answer.error(str(answer))
        accepted = [one.strip() for one in self._accept.split(",")]
        if any(one in _ONE_LINE for one in accepted):
            answer = answer.replace(b"\n", b"")
        self.answer = Answer(status, _JSON, answer)


def _response(answer: Answer) -> InferenceResponse:
    body = np.empty((1,), np.object_)
    body[0] = answer.body
    parameters = {_STATUS: answer.status, _CONTENT_TYPE: answer.content_type}
    return pb_utils.InferenceResponse([pb_utils.Tensor(_OUTPUT, body)], parameters=parameters)
