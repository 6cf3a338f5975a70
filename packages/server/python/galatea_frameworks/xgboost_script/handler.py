"""Default functions for an XGBoost script that does not define its own."""

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
    """The default functions of SageMaker's XGBoost container."""

    def default_model_fn(self, model_dir: str) -> Any:
        """Raises an error, because a script must define how its model is loaded.

        The file may contain a Booster, a pickle, or a model with scikit-learn's interface.
        """
        raise NotImplementedError(_NO_MODEL_FN)

    def default_input_fn(self, input_data: str | bytes, content_type: str | None) -> xgboost.DMatrix:
        """Decodes CSV, libsvm or RecordIO to a DMatrix. Parameters of the content type are ignored."""
        return matrices.decode(input_data, content_type)

    def default_predict_fn(self, input_data: Any, model: Any) -> Any:
        """Returns the predictions of a Booster.

        Models with scikit-learn's interface do not accept a DMatrix, so their scripts must define predict_fn.
        """
        return model.predict(input_data, validate_features=False)

    def default_output_fn(self, prediction: Any, accept: str) -> tuple[str | bytes, str]:
        """Encodes the prediction in the accepted type, which must be a single type."""
        if accept == content_types.CSV:
            return _csv_of(prediction), accept
        if accept not in encoder.SUPPORTED_CONTENT_TYPES:
            raise errors.UnsupportedFormatError(accept)
        return encoder.encode(prediction, accept), accept


def _csv_of(prediction: Any) -> str:
    """Returns a text with a line for each row. Numbers are printed as in Python."""
    array = np.array(prediction)
    if array.ndim == 1:
        array = array.reshape(-1, 1)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", strict=True).writerows(array)
    return text.getvalue()
