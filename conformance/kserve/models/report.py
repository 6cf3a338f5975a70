"""Says as JSON what the request told: id, parameters, sequence, timeout, requested outputs, inputs."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


def described(request):
    return {
        "id": request.request_id(),
        "parameters": json.loads(request.parameters() or "{}"),
        "correlation": request.correlation_id(),
        "flags": request.flags(),
        "timeout": request.timeout(),
        "requested": sorted(request.requested_output_names()),
        "inputs": [
            [
                t.name(),
                pb_utils.triton_string_to_numpy("TYPE_INT32") is np.int32,
                str(t.as_numpy().dtype),
                list(t.shape()),
            ]
            for t in request.inputs()
        ],
    }


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            text = json.dumps(described(request), sort_keys=True)
            batch = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().shape[0]
            value = np.array([text] * batch, dtype=object).reshape(batch, 1)
            responses.append(
                pb_utils.InferenceResponse([pb_utils.Tensor("REPORT", value), pb_utils.Tensor("OTHER", value)])
            )
        return responses
