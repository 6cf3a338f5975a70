"""The scikit-learn model of `sklearn_script.py` in Triton's Python backend."""

import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        # The scikit-learn of the other servers: Triton's interpreter finds it after its own packages.
        sys.path.append(json.loads(args["model_config"])["parameters"]["PACKAGES"]["string_value"])
        import joblib

        self.model = joblib.load(os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.joblib"))

    def execute(self, requests):
        answers = []
        for one in requests:
            rows = pb_utils.get_input_tensor_by_name(one, "ROWS").as_numpy()
            labels = self.model.predict(rows).astype(np.int64)
            answers.append(pb_utils.InferenceResponse([pb_utils.Tensor("LABELS", labels)]))
        return answers
