"""Default functions for a script that does not define its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

from . import encoders
from .unavailable import refused
from .worker import Response

if TYPE_CHECKING:
    from typing import Any

_handler = DefaultInferenceHandler()
default_model_fn = _handler.default_model_fn
default_predict_fn = _handler.default_predict_fn


def default_input_fn(input_data: str | bytes, content_type: str) -> Any:
    """Decodes a body to an array."""
    return encoders.decode(input_data, content_type)


def default_output_fn(prediction: Any, accept: str) -> Response:
    """Encodes an array in the accepted type."""
    return Response(response=encoders.encode(prediction, accept), mimetype=accept)


Transformer = refused("transformer.Transformer")
