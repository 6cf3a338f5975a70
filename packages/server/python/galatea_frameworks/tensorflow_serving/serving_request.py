"""A request to the container and its response."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import bodies, json_response, json_text
from .calls import Call
from .errors import ServingError
from .script import Context
from .serving_response import ServingResponse
from .target import METHODS, parse_target

if TYPE_CHECKING:
    from typing import Any

    from .models import Models
    from .script import Script
    from .target import Target

_JSON = "application/json"
_ONE_LINE = (_JSON, "application/jsonlines")


class RequestBody(NamedTuple):
    """A body and the values of its headers; "" for missing headers."""

    body: bytes
    content_type: str
    accept: str
    attributes: str


class ServingRequest:
    """A request to an archive without a script. While `response` is None, `call` must be run."""

    def __init__(self, request: RequestBody, models: Models) -> None:
        self._request = request
        self._models = models
        self.call = self.response = None
        try:
            target = parse_target(request.attributes)
        except ServingError as error:
            self.response = self._json_response(error.status, json_response.error(str(error)))
            return
        self._begin(target)

    def _begin(self, target: Target) -> None:
        try:
            self._call(target, bodies.parse_document(self._request.body, self._request.content_type))
        except ServingError as error:
            self.set_result(error)

    def _call(self, target: Target, document: Any) -> None:
        servable = self._models.find(target.model or self._models.default, target.version)
        self.call = Call(servable, target.method or METHODS[0], document)

    def run(self) -> None:
        """Runs the call alone."""
        if self.call is None:
            return
        try:
            self.set_result(self.call.run())
        except ServingError as error:
            self.set_result(error)

    def set_result(self, result: bytes | ServingError) -> None:
        """Sets the response from the result of the call."""
        if isinstance(result, ServingError):
            self.response = self._to_response(result.status, json_response.error(str(result)))
        else:
            self.response = self._to_response(200, result)

    def _to_response(self, status: int, body: bytes) -> ServingResponse:
        return self._json_response(status, body)

    def _json_response(self, status: int, body: bytes) -> ServingResponse:
        """Prints JSON on one line, if the client accepts JSON."""
        if any(one.strip() in _ONE_LINE for one in self._request.accept.split(",")):
            body = body.replace(b"\n", b"")
        return ServingResponse(status, _JSON, body)


class ScriptedRequest(ServingRequest):
    """A request to an archive with a script, which runs before and after the model."""

    def __init__(self, request: RequestBody, models: Models, script: Script, base: str) -> None:
        """Runs the part of the script that precedes the model. `base` is the URL of the REST API."""
        self._script = script
        self._base = base
        super().__init__(request, models)

    def _begin(self, target: Target) -> None:
        body, content_type, accept, attributes = self._request
        models = self._models
        # In a container with one archive, the request names the model. In a container with several archives, the archive is the model.
        name = models.default if models.is_one_of_many else target.model
        version = None if target.version is None else str(target.version)
        uri = target.uri(self._base, target.model or models.default)
        self._context = Context(
            name, version, target.method, uri, None, None, attributes or None, content_type or _JSON, accept or _JSON, len(body)
        )  # fmt: skip
        if self._script.calls_models:
            self.response = self._script.handle(body, self._context)
            return
        model_request, self.response = self._script.request_of(body, self._context)
        if self.response is not None:
            return
        try:
            self._call(target, json_text.first_value(json_text.text_of(model_request)))
        except ServingError as error:
            self.set_result(error)

    def _to_response(self, status: int, body: bytes) -> ServingResponse:
        return self._script.to_response(status, body, self._context)
