"""Errors that scripts raise, with their response status."""

from __future__ import annotations

# The toolkit's text, including its indentation.
_UNSUPPORTED = """Content type %s is not supported by this framework.

            Please implement input_fn to to deserialize the request data or an output_fn to
            serialize the response. For more information, see the SageMaker Python SDK README."""


class UnsupportedFormatError(Exception):
    """A content type that the default functions do not support. Has the toolkit's text."""

    def __init__(self, content_type: str | None, **options: object) -> None:
        self._message = _UNSUPPORTED % content_type
        super().__init__(self._message, **options)


class BaseInferenceToolkitError(Exception):
    """Raised by a script to select the status of its response."""

    def __init__(self, status_code: int, message: str, phrase: str) -> None:
        self.status_code = status_code
        self.message = message
        self.phrase = phrase
        super().__init__(status_code, message, phrase)


class GenericInferenceToolkitError(BaseInferenceToolkitError):
    """An error with a default message and phrase."""

    def __init__(self, status_code: int, message: str | None = None, phrase: str | None = None) -> None:
        message = message or "Invalid Request"
        super().__init__(status_code, message, phrase or message)
