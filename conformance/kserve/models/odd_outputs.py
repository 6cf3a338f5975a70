"""Answers that differ from the configuration in the way that KIND asks for."""

import numpy as np
import triton_python_backend_utils as pb_utils


def outputs(kind):
    one = np.array([7], np.int32)
    if kind == 0:
        return [pb_utils.Tensor("OUT", one), pb_utils.Tensor("SECOND", one)]
    if kind == 1:
        return [pb_utils.Tensor("OUT", np.array([1.5, 2.5], np.float64))]
    if kind == 2:
        return [pb_utils.Tensor("NOBODY", one), pb_utils.Tensor("OUT", one)]
    if kind == 3:
        return []
    if kind == 4:
        return [pb_utils.Tensor("SECOND", one), pb_utils.Tensor("OUT", one)]
    if kind == 5:
        return [pb_utils.Tensor("OUT", np.arange(6, dtype=np.int32).reshape(2, 3))]
    if kind == 6:
        return [pb_utils.Tensor("OUT", np.arange(6, dtype=np.int32).reshape(2, 3).T)]
    if kind == 7:
        return [pb_utils.Tensor("OUT", np.zeros([0], np.int32))]
    return [pb_utils.Tensor("OUT", np.array(["grüße", b"\x00\x01", ""], dtype=object))]


class TritonPythonModel:
    def execute(self, requests):
        kinds = [int(pb_utils.get_input_tensor_by_name(r, "KIND").as_numpy().reshape(-1)[0]) for r in requests]
        return [pb_utils.InferenceResponse(outputs(kind)) for kind in kinds]
