"""What takes the place of functions that a script for scikit-learn leaves out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from galatea_frameworks.toolkit import content_types, decoder, encoder
from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

if TYPE_CHECKING:
    from typing import Any


class SklearnHandler(DefaultInferenceHandler):
    """As the container of scikit-learn has them."""

    def default_input_fn(self, input_data: Any, content_type: str | None) -> Any:
        """Rows: one of them may come without brackets around it. Numbers as text are float32."""
        array = decoder.decode(input_data, content_type)
        if len(array.shape) == 1:
            array = array.reshape(1, -1)
        return array.astype(np.float32) if content_type in content_types.UTF8_TYPES else array

    def default_predict_fn(self, input_data: Any, model: Any) -> Any:
        """What the model predicts."""
        return model.predict(input_data)

    def default_output_fn(self, prediction: Any, accept: str) -> tuple[str | bytes, str]:
        """In exactly the type that is accepted: a list of several is none."""
        return encoder.encode(prediction, accept), accept
