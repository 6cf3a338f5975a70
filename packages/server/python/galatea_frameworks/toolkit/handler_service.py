"""Runs a handler service: a module named by SAGEMAKER_HANDLER, which receives requests in the form of multi-model-server."""

from __future__ import annotations

import importlib
import inspect
import traceback
from typing import TYPE_CHECKING

from . import content_types
from .script_response import ScriptResponse, body_bytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

    from .context import Context

_BODY = "body"
# The handler services of SageMaker's own containers. This toolkit replaces them.
_OF_CONTAINERS = {
    "sagemaker_sklearn_container.handler_service",
    "sagemaker_pytorch_serving_container.handler_service",
    "/home/model-server/handler_service.py",
}
_REFUSED = 503


def service_name(value: str | None) -> str | None:
    """Returns the handler service that the variable names; None if it is the handler service of a SageMaker container."""
    return None if not value or value in _OF_CONTAINERS else value


class HandlerService:
    """A handler service.

    The constructor raises exceptions of the module's import and initialization, and ValueError if there is no entry point.
    """

    def __init__(self, name: str, context: Context) -> None:
        """Imports the service. `name` is `module`, `module:function`, or the path of a file, whose directory is ignored."""
        module_name, _, function = name.partition(":")
        if module_name.endswith(".py"):
            module_name = module_name[:-3]
        self._context = context
        self._handle = _entry_point(importlib.import_module(module_name.split("/")[-1]), function or "handle", context)

    def handle(self, bodies: list[bytes]) -> list[ScriptResponse]:
        """Returns the response to each body. The context describes these requests."""
        try:
            found = self._handle([{_BODY: bytearray(body)} for body in bodies], self._context)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the service becomes the error response
            traceback.print_exc()
            if type(error).__name__ == "PredictionException" and hasattr(error, "error_code"):
                return [_refusal(int(error.error_code), str(error.message)) for _ in bodies]
            return [_refusal(_REFUSED, "Prediction failed") for _ in bodies]
        if not isinstance(found, list):
            return [_refusal(_REFUSED, "Invalid model predict output") for _ in bodies]
        if len(found) != len(bodies):
            return [_refusal(_REFUSED, "number of batch response mismatched") for _ in bodies]
        return [self._to_response(index, body) for index, body in enumerate(found)]

    def _to_response(self, index: int, body: Any) -> ScriptResponse:
        response_context = self._context.request_processor[index]
        status, headers = response_context.get_response_status_code(), response_context.get_response_headers()
        try:
            return ScriptResponse(body_bytes(body), headers.get("content-type"), status, headers)
        except (TypeError, ValueError) as error:
            traceback.print_exception(type(error), error, error.__traceback__)
            return _refusal(_REFUSED, "Unsupported model output data type.")


def _entry_point(module: ModuleType, function: str, context: Context) -> Callable[..., Any]:
    """Returns the entry point, already initialized: the module's function, or the method `handle` of its only class."""
    found = getattr(module, function, None)
    if found is not None:
        found(None, context)
        return found
    own = [each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__]
    if len(own) != 1:
        raise ValueError("Expected only one class in custom service code or a function entry point %s" % own)
    service = own[0]()
    if getattr(service, "handle", None) is None:
        raise ValueError("Expect handle method in class %s" % own[0])
    if getattr(service, "initialize", None) is not None:
        service.initialize(context)
    return service.handle


def _refusal(status: int, message: str) -> ScriptResponse:
    """Returns an error response with the text and format of multi-model-server."""
    kind = "InternalServerException" if status >= 500 else "BadRequestException"
    body = {"code": status, "type": kind, "message": message}
    return ScriptResponse(body_bytes(body), content_types.JSON, status)
