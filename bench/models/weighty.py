"""Allocates memory like a real model and counts its responses, beginning with 1 after a load."""

import numpy as np
import triton_python_backend_utils as pb_utils

HELD_BYTES = 16 * 1024 * 1024


class TritonPythonModel:
    def initialize(self, args):
        self.weights = np.ones(HELD_BYTES // 8)
        self.answers = 0

    def execute(self, requests):
        responses = []
        for _ in requests:
            self.answers += 1
            responses.append(
                pb_utils.InferenceResponse([pb_utils.Tensor("ANSWERS", np.array([self.answers], np.int32))])
            )
        return responses
