"""Scales pixels from 0..255 to 0..1."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            pixels = pb_utils.get_input_tensor_by_name(request, "pixels").as_numpy()
            features = pb_utils.Tensor("features", pixels.astype(np.float32) / 255)
            responses.append(pb_utils.InferenceResponse([features]))
        return responses
