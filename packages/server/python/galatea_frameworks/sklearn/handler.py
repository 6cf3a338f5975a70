"""Default functions for a scikit-learn script that does not define its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from galatea_frameworks.toolkit import content_types, decoder, encoder
from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

if TYPE_CHECKING:
    from typing import Any


class SklearnHandler(DefaultInferenceHandler):
    """The default functions of SageMaker's scikit-learn container."""

    def default_input_fn(self, input_data: Any, content_type: str | None) -> Any:
        """Decodes the body to rows. A single row may have no brackets around it. Numbers in text formats become float32."""
        array = decoder.decode(input_data, content_type)
        if len(array.shape) == 1:
            array = array.reshape(1, -1)
        return array.astype(np.float32) if content_type in content_types.UTF8_TYPES else array

    def default_predict_fn(self, input_data: Any, model: Any) -> Any:
        """Returns the model's predictions."""
        return model.predict(input_data)

    def default_output_fn(self, prediction: Any, accept: str) -> tuple[str | bytes, str]:
        """Encodes the prediction in the accepted type, which must be a single type."""
        return encoder.encode(prediction, accept), accept
