"""A TorchScript module inside a Python model, as users serve PyTorch with Triton's Python backend: one forward call
for each batch.
"""

import json
import os
import sys

import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        # The torch of the other server: Triton's interpreter finds it after its own packages.
        sys.path.append(json.loads(args["model_config"])["parameters"]["PACKAGES"]["string_value"])
        import torch

        self.torch = torch
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.pt")
        self.module = torch.jit.load(path, map_location="cpu")

    def execute(self, requests):
        torch = self.torch
        given = [torch.from_numpy(pb_utils.get_input_tensor_by_name(one, "INPUT__0").as_numpy()) for one in requests]
        with torch.inference_mode():
            found = self.module(given[0] if len(given) == 1 else torch.cat(given))
        rows = [one.shape[0] for one in given]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT__0", one.numpy())]) for one in torch.split(found, rows)
        ]
