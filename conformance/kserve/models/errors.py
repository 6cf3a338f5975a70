"""Fails in the way that the number in KIND asks for."""

import numpy as np
import triton_python_backend_utils as pb_utils

CODES = ["UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG", "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"]


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            kind = int(pb_utils.get_input_tensor_by_name(request, "KIND").as_numpy().reshape(-1)[0])
            if kind < len(CODES):
                code = getattr(pb_utils.TritonError, CODES[kind])
                error = pb_utils.TritonError("asked for " + CODES[kind], code)
                responses.append(pb_utils.InferenceResponse(error=error))
            elif kind == 10:
                responses.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("no code given")))
            elif kind == 11:
                raise ValueError("raised while executing")
            elif kind == 12:
                raise pb_utils.TritonModelException("raised as TritonModelException")
            elif kind == 13:
                return []
            elif kind == 14:
                return "not a list"
            elif kind == 15:
                responses.append("not a response")
            elif kind == 16:
                output = pb_utils.Tensor("OUT", np.array([1], np.int32))
                responses.append(pb_utils.InferenceResponse([output], error=pb_utils.TritonError("beside an output")))
            elif kind == 17:
                raise KeyError("ключ")
            else:
                responses.append(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([kind], np.int32))]))
        return responses
