"""Says which version and which instance answered."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        self.text = args["model_name"] + "/" + args["model_version"]

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([self.text], dtype=object))]) for _ in requests
        ]
