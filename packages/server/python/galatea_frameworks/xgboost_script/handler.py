"""What takes the place of functions that a script for XGBoost leaves out."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import numpy as np

from galatea_frameworks.toolkit import content_types, encoder, errors
from galatea_frameworks.toolkit.defaults import DefaultInferenceHandler

from . import matrices

if TYPE_CHECKING:
    from typing import Any

    import xgboost

_NO_MODEL_FN = """
Please provide a model_fn implementation.
See documentation for model_fn at https://github.com/aws/sagemaker-python-sdk
"""


class XGBoostHandler(DefaultInferenceHandler):
    """As the container of XGBoost has them."""

    def default_model_fn(self, model_dir: str) -> Any:
        """A script has to say how its model is loaded: a file may be a Booster's, a pickle, or one of scikit-learn's interface."""
        raise NotImplementedError(_NO_MODEL_FN)

    def default_input_fn(self, input_data: str | bytes, content_type: str | None) -> xgboost.DMatrix:
        """A DMatrix of CSV, libsvm or RecordIO, whatever parameters stand behind the type."""
        return matrices.decode(input_data, content_type)

    def default_predict_fn(self, input_data: Any, model: Any) -> Any:
        """What the Booster predicts. Models of scikit-learn's interface take no such argument: their scripts have a predict_fn."""
        return model.predict(input_data, validate_features=False)

    def default_output_fn(self, prediction: Any, accept: str) -> tuple[str | bytes, str]:
        """In exactly the type that is accepted: a list of several is none."""
        if accept == content_types.CSV:
            return _csv_of(prediction), accept
        if accept not in encoder.SUPPORTED_CONTENT_TYPES:
            raise errors.UnsupportedFormatError(accept)
        return encoder.encode(prediction, accept), accept


def _csv_of(prediction: Any) -> str:
    """A line for each row; numbers as Python prints them."""
    array = np.array(prediction)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", strict=True).writerows(array)
    return text.getvalue()
