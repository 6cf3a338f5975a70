"""The model that the zygote runs for its warm-up (`warm_up.py`). It does the work of a small model."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Returns the input plus one."""

    def initialize(self, _args: dict[str, str]) -> None:
        """Creates the constant one."""
        self._one = np.float32(1)

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        """Adds one to each request's tensor."""
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "WARM_UP").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("WARM_UP", array + self._one)]))
        return responses
