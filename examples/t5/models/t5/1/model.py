"""Runs T5 of Hugging Face's transformers in Triton's Python backend. Input and output are token numbers."""

import functools
import os

import jax
import numpy as np
import triton_python_backend_utils as pb_utils
from transformers import FlaxT5ForConditionalGeneration

MAX_LENGTH = 24


class TritonPythonModel:
    def initialize(self, args):
        checkpoint = os.path.join(args["model_repository"], args["model_version"], "checkpoint")
        self.model = FlaxT5ForConditionalGeneration.from_pretrained(checkpoint)
        # Compiled once for each shape of a request.
        self.generate = jax.jit(functools.partial(self.model.generate, max_length=MAX_LENGTH, do_sample=False))

    def execute(self, requests):
        responses = []
        for request in requests:
            input_ids = pb_utils.get_input_tensor_by_name(request, "input_ids").as_numpy()
            attention_mask = pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy()
            generated = self.generate(input_ids, attention_mask=attention_mask).sequences
            output = pb_utils.Tensor("output", np.asarray(generated, np.int32))
            responses.append(pb_utils.InferenceResponse([output]))
        return responses

    def finalize(self):
        self.model = self.generate = None
