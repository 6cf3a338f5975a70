"""The third of three models: digits are letters as on telephone keys, and naive Bayes determines the topic of a word."""

import os

import numpy as np
import triton_python_backend_utils as pb_utils

TOPICS = [b"animals", b"food", b"travel", b"unreadable"]


class TritonPythonModel:
    def initialize(self, args):
        path = os.path.join(args["model_repository"], args["model_version"], "weights.npz")
        weights = np.load(path)
        self.likelihoods, self.priors = weights["likelihoods"], weights["priors"]

    def execute(self, requests):
        responses = []
        for request in requests:
            digits = pb_utils.get_input_tensor_by_name(request, "DIGITS").as_numpy()
            scores = np.zeros(4, np.float32)
            if (digits < 0).any():
                scores[3] = 1
            else:
                # Pairs of neighbouring digits; words are padded with 0.
                pairs = np.bincount(10 * digits[:-1] + digits[1:], minlength=100)
                joint = self.likelihoods @ pairs + self.priors
                likely = np.exp(joint - joint.max())
                scores[:3] = likely / likely.sum()
            topic = np.array([TOPICS[scores.argmax()]], object)
            tensors = [pb_utils.Tensor("SCORES", scores), pb_utils.Tensor("TOPIC", topic)]
            responses.append(pb_utils.InferenceResponse(tensors))
        return responses
