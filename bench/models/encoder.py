"""The encoder of the MiniLM example, run by ONNX Runtime inside a Python model: one run for each batch, like the
original model.
"""

import os

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = os.cpu_count()
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def execute(self, requests):
        names = ("input_ids", "attention_mask")
        parts = [[pb_utils.get_input_tensor_by_name(r, name).as_numpy() for r in requests] for name in names]
        feed = {name: part[0] if len(part) == 1 else np.concatenate(part) for name, part in zip(names, parts)}
        tokens = self.session.run(["token_embeddings"], feed)[0]
        responses = []
        start = 0
        for ids in parts[0]:
            end = start + ids.shape[0]
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("token_embeddings", tokens[start:end])]))
            start = end
        return responses
