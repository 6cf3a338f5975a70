"""A request to the container and its response."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from . import bodies, json_answer, json_text
from .answer import ServingResponse
from .calls import Call
from .errors import ServingError
from .script import Context
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
    """A request to an archive without a script. `answer` is the response; while it is None, `call` must be run."""

    def __init__(self, said: RequestBody, models: Models) -> None:
        self._said = said
        self._models = models
        self.call = self.answer = None
        try:
            target = parse_target(said.attributes)
        except ServingError as error:
            self.answer = self._own(error.status, json_answer.error(str(error)))
            return
        self._begin(target)

    def _begin(self, target: Target) -> None:
        try:
            self._call(target, bodies.parse_document(self._said.body, self._said.content_type))
        except ServingError as error:
            self.settle(error)

    def _call(self, target: Target, document: Any) -> None:
        servable = self._models.find(target.model or self._models.default, target.version)
        self.call = Call(servable, target.method or METHODS[0], document)

    def run(self) -> None:
        """Runs the call alone."""
        if self.call is None:
            return
        try:
            self.settle(self.call.run())
        except ServingError as error:
            self.settle(error)

    def settle(self, result: bytes | ServingError) -> None:
        """Sets the response from the result of the call."""
        if isinstance(result, ServingError):
            self.answer = self._answer(result.status, json_answer.error(str(result)))
        else:
            self.answer = self._answer(200, result)

    def _answer(self, status: int, body: bytes) -> ServingResponse:
        return self._own(status, body)

    def _own(self, status: int, body: bytes) -> ServingResponse:
        """Prints JSON on one line, if the client accepts JSON."""
        if any(one.strip() in _ONE_LINE for one in self._said.accept.split(",")):
            body = body.replace(b"\n", b"")
        return ServingResponse(status, _JSON, body)


class ScriptedRequest(ServingRequest):
    """A request to an archive with a script, which runs before and after the model."""

    def __init__(self, said: RequestBody, models: Models, script: Script, base: str) -> None:
        """Runs the script's part before the model. `base` is the URL of the REST API."""
        self._script = script
        self._base = base
        super().__init__(said, models)

    def _begin(self, target: Target) -> None:
        body, content_type, accept, attributes = self._said
        models = self._models
        # In a container with one archive, the request names the model; with several archives, the archive is the model.
        name = models.default if models.is_one_of_many else target.model
        version = None if target.version is None else str(target.version)
        uri = target.uri(self._base, target.model or models.default)
        self._context = Context(
            name, version, target.method, uri, None, None, attributes or None, content_type or _JSON, accept or _JSON, len(body)
        )  # fmt: skip
        if self._script.asks_itself:
            self.answer = self._script.handle(body, self._context)
            return
        request, self.answer = self._script.request_of(body, self._context)
        if self.answer is not None:
            return
        try:
            self._call(target, json_text.first_value(json_text.text_of(request)))
        except ServingError as error:
            self.settle(error)

    def _answer(self, status: int, body: bytes) -> ServingResponse:
        return self._script.to_response(status, body, self._context)
