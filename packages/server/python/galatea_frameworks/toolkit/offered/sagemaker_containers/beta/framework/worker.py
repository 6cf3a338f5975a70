"""The response object that scripts for scikit-learn return from output_fn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .unavailable import refused

if TYPE_CHECKING:
    from typing import Any


class Response:
    """A body with content type and status, compatible with Flask's response."""

    def __init__(
        self,
        response: str | bytes | None = None,
        accept: str | None = None,
        status: int = 200,
        headers: Any = None,
        mimetype: str | None = None,
        direct_passthrough: bool = False,
    ) -> None:
        self.response = response
        self.status_code = int(status)
        self.headers = headers
        self.mimetype = mimetype or "application/json"

    def get_data(self) -> bytes:
        """Returns the body."""
        body = b"" if self.response is None else self.response
        return body.encode("utf-8") if isinstance(body, str) else bytes(body)


def default_healthcheck_fn() -> Response:
    """Returns an empty response with status 200."""
    return Response(status=200)


Request = refused("worker.Request")
Worker = refused("worker.Worker")
