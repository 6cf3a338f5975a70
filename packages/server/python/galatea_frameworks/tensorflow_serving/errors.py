"""Errors of requests, with TensorFlow's codes and texts and TensorFlow Serving's HTTP statuses."""

from __future__ import annotations

from typing import NamedTuple


class Code(NamedTuple):
    """An error code of TensorFlow: its printed name and its HTTP status."""

    name: str
    status: int


INVALID_ARGUMENT = Code("INVALID_ARGUMENT", 400)
NOT_FOUND = Code("NOT_FOUND", 404)
FAILED_PRECONDITION = Code("FAILED_PRECONDITION", 400)
UNIMPLEMENTED = Code("UNIMPLEMENTED", 501)
INTERNAL = Code("INTERNAL", 500)

# HTTP statuses by TensorFlow's numeric codes.
_STATUSES = {
    1: 499, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400, 12: 501, 14: 503, 16: 401
}  # fmt: skip


class ServingError(Exception):
    """An error of a request. Its text becomes the member `error` of the JSON response."""

    def __init__(self, message: str, code: Code = INVALID_ARGUMENT, status: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.status = code.status if status is None else status

    def shown(self) -> str:
        """Returns the text of this error for use inside another error, as TensorFlow Serving prints it."""
        return "%s: %s" % (self.code.name, self)


def status_of(number: int) -> int:
    """Returns the HTTP status for a numeric code of TensorFlow."""
    return _STATUSES.get(number, 500)
