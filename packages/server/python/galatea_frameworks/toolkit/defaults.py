"""Default functions for a script that does not define its own. Frameworks extend them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import decoder, encoder, errors
from .accept import parse_accept

if TYPE_CHECKING:
    from typing import Any

_MISSING = """
Please provide a %s implementation.
See documentation for %s at https://sagemaker.readthedocs.io/en/stable/
"""


class DefaultInferenceHandler:
    """Decodes and encodes the default content types. There is no default for loading and calling a model."""

    def default_model_fn(self, model_dir: str, context: Any = None) -> Any:
        """Raises an error, because a script must define how its model is loaded."""
        raise NotImplementedError(_MISSING % ("model_fn", "model_fn"))

    def default_input_fn(self, input_data: Any, content_type: str | None, context: Any = None) -> Any:
        """Decodes the body to an array."""
        return decoder.decode(input_data, content_type)

    def default_predict_fn(self, data: Any, model: Any, context: Any = None) -> Any:
        """Raises an error, because a script must define how its model is called."""
        raise NotImplementedError(_MISSING % ("predict_fn", "predict_fn"))

    def default_output_fn(self, prediction: Any, accept: str, context: Any = None) -> tuple[str | bytes, str]:
        """Encodes the prediction in the first accepted type that is supported, and returns body and type."""
        for content_type in parse_accept(accept):
            if content_type in encoder.SUPPORTED_CONTENT_TYPES:
                return encoder.encode(prediction, content_type), content_type
        raise errors.UnsupportedFormatError(accept)
