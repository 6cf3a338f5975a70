"""The context object that a script's functions may have as their last argument. It contains properties of the request and settings for the
response."""

from __future__ import annotations

import http.client
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class RequestProcessor:
    """The headers of one request, and the status and headers of its response."""

    def __init__(self, headers: dict[str, str]) -> None:
        self._headers = headers
        self._status = int(http.client.OK)
        self._phrase = None
        self._response_headers = {}

    def get_request_property(self, key: str) -> str | None:
        """Returns a header of the request. `key` must have the toolkit's spelling."""
        return self._headers.get(key)

    def get_request_properties(self) -> dict[str, str]:
        """Returns the request's headers."""
        return self._headers

    def report_status(self, code: int, reason_phrase: str | None = None) -> None:
        """Sets the response's status."""
        self._status = int(code)
        self._phrase = reason_phrase

    def get_response_status_code(self) -> int:
        """Returns the response's status."""
        return self._status

    def get_response_status_phrase(self) -> str | None:
        """Returns the response's reason phrase."""
        return self._phrase

    def add_response_property(self, key: str, value: str) -> None:
        """Sets a header of the response."""
        self._response_headers[key] = value

    def get_response_headers(self) -> dict[str, str]:
        """Returns the response's headers."""
        return self._response_headers

    def get_response_header(self, key: str) -> str | None:
        """Returns a header of the response."""
        return self._response_headers.get(key)


class Context:
    """The context object of multi-model-server: properties of the model and of the current requests."""

    def __init__(self, model_name: str, model_dir: str, batch_size: int) -> None:
        self.model_name = model_name
        self.manifest = {}
        self.metrics = None
        self._system_properties = {
            "model_dir": model_dir,
            "gpu_id": None,
            "batch_size": batch_size,
            "server_name": "galatea",
            "server_version": "1",
        }
        self.request_ids = None
        self.request_processor = [RequestProcessor({})]

    @property
    def system_properties(self) -> dict[str, Any]:
        """Returns `model_dir`, `gpu_id` and `batch_size`."""
        return self._system_properties

    def begin(self, *headers: dict[str, str]) -> None:
        """Starts a new request, or several if several header dictionaries are given."""
        self.request_processor = [RequestProcessor(each) for each in headers]

    def get_request_id(self, idx: int = 0) -> str:
        """Returns the id of the request, which is always empty."""
        return ""

    def get_request_header(self, idx: int, key: str) -> str | None:
        """Returns a header of the request."""
        return self.request_processor[idx].get_request_property(key)

    def get_all_request_header(self, idx: int) -> dict[str, str]:
        """Returns all headers of the request."""
        return self.request_processor[idx].get_request_properties()

    def set_response_content_type(self, idx: int, value: str) -> None:
        """Sets the response's content type."""
        self.set_response_header(idx, "content-type", value)

    def get_response_content_type(self, idx: int) -> str | None:
        """Returns the response's content type."""
        return self.request_processor[idx].get_response_header("content-type")

    def get_response_status(self, idx: int) -> tuple[int, str | None]:
        """Returns the response's status and reason phrase."""
        said = self.request_processor[idx]
        return said.get_response_status_code(), said.get_response_status_phrase()

    def set_response_status(self, code: int = 200, phrase: str = "", idx: int = 0) -> None:
        """Sets the response's status."""
        self.request_processor[idx].report_status(code, phrase)

    def set_all_response_status(self, code: int = 200, phrase: str = "") -> None:
        """Sets the status of all responses."""
        for said in self.request_processor:
            said.report_status(code, phrase)

    def set_response_header(self, idx: int, key: str, value: str) -> None:
        """Sets a header of the response."""
        self.request_processor[idx].add_response_property(key, value)

    def get_response_headers(self, idx: int) -> dict[str, str]:
        """Returns the response's headers."""
        return self.request_processor[idx].get_response_headers()
