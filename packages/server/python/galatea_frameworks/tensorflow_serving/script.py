"""Runs an archive's `code/inference.py`, whose functions convert requests and responses."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import sys
import traceback
from collections import namedtuple
from typing import TYPE_CHECKING

import requests
from requests.structures import CaseInsensitiveDict

from .serving_response import ServingResponse

if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_NAME = "inference"
_FAILED = 500
_JSON = "application/json"
_ERROR_CHARACTERS_MAX = 1 << 20

_Fields = namedtuple(
    "Context",
    "model_name, model_version, method, rest_uri, grpc_port, channel, custom_attributes, request_content_type, accept_header, content_length",
)  # fmt: skip


class Context(_Fields):
    """The request's properties, which are passed to a script's function. `grpc_port` and `channel` are None, because there is no gRPC."""

    # Time limit of a request to `rest_uri` in seconds. Newer containers have this additional field.
    timeout = 60


class Script:
    """The script of one archive. The constructor raises the exceptions of its import."""

    def __init__(self, path: str, packages: str) -> None:
        """Imports the script. `packages` is the directory of the script's requirements; "" for none."""
        code = os.path.dirname(path)
        own = [code, os.path.join(code, "lib"), packages]
        sys.path[:0] = [one for one in own if one and os.path.isdir(one)]
        try:
            module = _imported(path)
            self._handler = getattr(module, "handler", None)
            self._input_handler = getattr(module, "input_handler", None)
            self._output_handler = getattr(module, "output_handler", None)
            if self._handler is None and (self._input_handler is None or self._output_handler is None):
                raise NotImplementedError("Handlers are not implemented correctly in user script.")
        except BaseException:
            # The load fails with this error. The full traceback is only printed to the container's log.
            traceback.print_exc()
            raise

    @property
    def calls_models(self) -> bool:
        """True if the script calls the models itself, through the REST API."""
        return self._handler is not None

    def handle(self, body: bytes, context: Context) -> ServingResponse:
        """Returns the response of a script that calls the models itself."""
        try:
            return _response_of(self._handler(io.BytesIO(body), context))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
            return _failed(error)

    def request_of(self, body: bytes, context: Context) -> tuple[bytes | None, ServingResponse | None]:
        """Returns the model request that the script creates from a body, or an error response if the script fails."""
        try:
            made = self._input_handler(io.BytesIO(body), context)
            # Encodes the data in the same way as the `requests` package sends it.
            sent = requests.Request("POST", context.rest_uri, data=made).prepare().body
            if hasattr(sent, "read"):
                sent = sent.read()
            elif sent is not None and not isinstance(sent, (bytes, str)):
                sent = b"".join(sent)
            return sent.encode("utf-8") if isinstance(sent, str) else sent or b"", None
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
            return None, _failed(error)

    def to_response(self, status: int, body: bytes, context: Context) -> ServingResponse:
        """Returns the response that the script creates from the model's response."""
        response = requests.Response()
        response.status_code = status
        response.reason = requests.status_codes._codes.get(status, ("",))[0]
        response.url = context.rest_uri
        response.encoding = "utf-8"
        response.headers = CaseInsensitiveDict({"Content-Type": _JSON, "Content-Length": str(len(body))})
        response._content = body
        response._content_consumed = True
        try:
            return _response_of(self._output_handler(response, context))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - an exception of the script becomes the error response
            return _failed(error)


def _imported(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_NAME, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_NAME] = module
    spec.loader.exec_module(module)
    return module


def _response_of(result: Any) -> ServingResponse:
    body, content_type = result
    if isinstance(body, str):
        body = body.encode("utf-8")
    elif body is None:
        body = b""
    elif not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("a handler must return str or bytes and a content type, got %s" % type(body).__name__)
    return ServingResponse(200, _JSON if content_type is None else str(content_type), bytes(body))


def _failed(error: BaseException) -> ServingResponse:
    """Returns the container's error response. The full traceback is printed only to the container's log."""
    traceback.print_exception(type(error), error, error.__traceback__)
    try:
        text = str(error)
    except Exception as second:  # noqa: BLE001 - `__str__` of the error is the script's code
        text = "%s: its message is not available" % type(second).__name__
    body = json.dumps({"error": text[:_ERROR_CHARACTERS_MAX]})
    return ServingResponse(_FAILED, _JSON, body.encode("utf-8"))
