"""The defaults for functions that an XGBoost script does not define."""

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
    """The defaults of SageMaker's XGBoost container."""

    def default_model_fn(self, model_dir: str) -> Any:
        """Raises: a script must define how its model is loaded, because a file may be a Booster's, a pickle, or one of scikit-learn's
        interface.
        """
        raise NotImplementedError(_NO_MODEL_FN)

    def default_input_fn(self, input_data: str | bytes, content_type: str | None) -> xgboost.DMatrix:
        """Returns a DMatrix of CSV, libsvm or RecordIO, with any parameters after the type."""
        return matrices.decode(input_data, content_type)

    def default_predict_fn(self, input_data: Any, model: Any) -> Any:
        """Returns the Booster's predictions.

        Models of scikit-learn's interface take no such argument: their scripts have a predict_fn.
        """
        return model.predict(input_data, validate_features=False)

    def default_output_fn(self, prediction: Any, accept: str) -> tuple[str | bytes, str]:
        """Encodes in exactly the accepted type: a list of several types is not supported."""
        if accept == content_types.CSV:
            return _csv_of(prediction), accept
        if accept not in encoder.SUPPORTED_CONTENT_TYPES:
            raise errors.UnsupportedFormatError(accept)
        return encoder.encode(prediction, accept), accept


def _csv_of(prediction: Any) -> str:
    """Returns a line for each row; numbers as Python prints them."""
    array = np.array(prediction)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", strict=True).writerows(array)
    return text.getvalue()
