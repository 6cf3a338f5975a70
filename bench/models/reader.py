import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """A layer with weights of its own for each model's name, as one step of reading a document: quality, recognition, topic."""

    def initialize(self, args):
        name = json.loads(args["model_config"])["name"]
        random = np.random.default_rng(sum(name.encode()))
        self.weights = (random.standard_normal((64, 64)) / 8).astype(np.float32)

    def execute(self, requests):
        responses = []
        for request in requests:
            value = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("X", np.tanh(value @ self.weights))]))
        return responses
