"""The model that the zygote rehearses with (`rehearsal.py`). It does what small models do."""

from __future__ import annotations

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Answers with the number one more."""

    def initialize(self, _args: dict[str, str]) -> None:
        """As models have it."""
        self._one = np.float32(1)

    def execute(self, requests: list[pb_utils.InferenceRequest]) -> list[pb_utils.InferenceResponse]:
        """As models have it."""
        responses = []
        for request in requests:
            array = pb_utils.get_input_tensor_by_name(request, "REHEARSED").as_numpy()
            responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("REHEARSED", array + self._one)]))
        return responses
