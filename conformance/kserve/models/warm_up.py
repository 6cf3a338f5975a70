"""Says what it has executed so far; a model whose name has "failing" in it answers with errors."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def described(request):
    tensors = [(tensor.name(), tensor.as_numpy()) for tensor in request.inputs()]
    return [[name, array.dtype.name, array.shape, [str(x) for x in array.ravel()]] for name, array in tensors]


class TritonPythonModel:
    def initialize(self, args):
        self.instance = args["model_instance_name"]
        self.batches = int(json.loads(args["model_config"])["max_batch_size"]) > 0
        self.executions = []

    def execute(self, requests):
        if "failing" in self.instance:
            return [pb_utils.InferenceResponse(error=pb_utils.TritonError("not in the mood")) for _ in requests]
        self.executions.append([described(request) for request in requests])
        seen = json.dumps([self.instance, self.executions])
        shape = [1, 1] if self.batches else [1]
        output = pb_utils.Tensor("SEEN", np.array([seen], dtype=object).reshape(shape))
        return [pb_utils.InferenceResponse([output]) for _ in requests]
