"""Says what it was given, then writes over all of it: tensors, texts, lists, and what it kept of the call before."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def told(request, x, texts):
    return {
        "sum": float(x.sum(dtype=np.float64)),
        "first": texts[0].decode() if len(texts) else "",
        "texts": len(texts),
        "parameters": json.loads(request.parameters()),
        "requested": sorted(request.requested_output_names()),
        "inputs": sorted(tensor.name() for tensor in request.inputs()),
    }


class TritonPythonModel:
    def initialize(self, args):
        self.answered = []

    def execute(self, requests):
        for array in self.answered:
            array[:] = -9
        self.answered = []
        responses = []
        for request in list(requests):
            x = pb_utils.get_input_tensor_by_name(request, "X").as_numpy()
            text = pb_utils.get_input_tensor_by_name(request, "TEXT")
            texts = np.array([], dtype=object) if text is None else text.as_numpy()
            saw = json.dumps(told(request, x, texts), sort_keys=True)
            seen = x * 1
            x *= 0
            x -= 1
            texts[:] = b"gone"
            request.inputs().clear()
            request.requested_output_names().clear()
            self.answered.append(seen)
            responses.append(
                pb_utils.InferenceResponse(
                    [
                        pb_utils.Tensor("SAW", np.array([saw], dtype=object)),
                        pb_utils.Tensor("SEEN", seen),
                        pb_utils.Tensor("SPOILT", x),
                        pb_utils.Tensor("TEXTS", texts),
                    ]
                )
            )
        return responses
