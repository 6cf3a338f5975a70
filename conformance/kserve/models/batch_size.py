"""Each request learns how many requests and rows its batch held, after as many milliseconds as its first input says."""

import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        inputs = [pb_utils.get_input_tensor_by_name(request, "DELAY_MS").as_numpy() for request in requests]
        time.sleep(max(int(value.max()) for value in inputs) / 1000)
        rows = sum(value.shape[0] for value in inputs)
        return [
            pb_utils.InferenceResponse(
                [
                    pb_utils.Tensor("REQUESTS", np.full([value.shape[0], 1], len(requests), np.int32)),
                    pb_utils.Tensor("ROWS", np.full([value.shape[0], 1], rows, np.int32)),
                ]
            )
            for value in inputs
        ]
