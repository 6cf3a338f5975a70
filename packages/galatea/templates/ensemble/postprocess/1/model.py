"""Returns the label with the highest score."""

import numpy as np
import triton_python_backend_utils as pb_utils

LABELS = np.array(["cat", "dog", "bird"], dtype=object)


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            scores = pb_utils.get_input_tensor_by_name(request, "scores").as_numpy()
            label = pb_utils.Tensor("label", LABELS[scores.argmax(axis=1)].reshape(-1, 1))
            responses.append(pb_utils.InferenceResponse([label]))
        return responses
