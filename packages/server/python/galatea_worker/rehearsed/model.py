"""The model of the zygote's rehearsal (`rehearsal.py`), which does the work of small models."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Responds with the number plus one."""

    def initialize(self, _args: dict[str, str]) -> None:
        """Sets the constant."""
        self._one = np.float32(1)

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        """Adds one to each request's tensor."""
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "REHEARSED").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("REHEARSED", array + self._one)]))
        return responses
