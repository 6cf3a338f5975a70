"""The base class of an inference spec, with which users of the SDK define how a model is loaded and called."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class InferenceSpec(abc.ABC):
    """The functions `load` and `invoke` of a model must be defined; all others are optional."""

    @abc.abstractmethod
    def load(self, model_dir: str) -> Any:
        """Loads and returns the model."""

    @abc.abstractmethod
    def invoke(self, input_object: Any, model: Any) -> Any:
        """Returns the model's prediction for an input."""

    def preprocess(self, input_data: Any) -> Any:
        """Converts the input of `invoke`. If it returns None, the input is used unchanged."""
        return None

    def postprocess(self, predictions: Any) -> Any:
        """Converts the prediction to the response. If it returns None, the prediction is used unchanged."""
        return None

    def prepare(self, *arguments: Any, **options: Any) -> Any:
        """Not called by this server. The SDK calls it when the model is built."""
        return None

    def get_model(self) -> Any:
        """Returns the name of a Hugging Face model."""
        return None
