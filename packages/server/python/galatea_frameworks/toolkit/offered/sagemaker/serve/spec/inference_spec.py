"""The base class of a user's inference_spec."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any


class InferenceSpec(abc.ABC):
    """The functions that load and invoke a model; the others are optional."""

    @abc.abstractmethod
    def load(self, model_dir: str) -> Any:
        """Returns the model."""

    @abc.abstractmethod
    def invoke(self, input_object: Any, model: Any) -> Any:
        """Returns the model's prediction."""

    def preprocess(self, input_data: Any) -> Any:
        """Returns the input of invoke; None leaves the input unchanged."""
        return None

    def postprocess(self, predictions: Any) -> Any:
        """Returns the response; None leaves the prediction unchanged."""
        return None

    def prepare(self, *arguments: Any, **options: Any) -> Any:
        """Runs where the model is built, not here."""
        return None

    def get_model(self) -> Any:
        """Returns the name of a Hugging Face model."""
        return None
