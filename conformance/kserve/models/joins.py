"""LEFT and RIGHT joined with a plus; what says `wait` keeps it for a moment."""

import time

import numpy as np
import triton_python_backend_utils as pb_utils


def text(request, name):
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0].decode()


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            joined = text(request, "LEFT") + "+" + text(request, "RIGHT")
            if "wait" in joined:
                time.sleep(0.1)
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([joined], dtype=object))]))
        return responses
