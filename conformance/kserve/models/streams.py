"""Runs CODE once for each request, with `sender`, `say(text, flags)` and `fail(text, flags)`; what it leaves in `result` is returned."""

import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def answer(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([str(value)], dtype=object))])


def error(text):
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(text))


class TritonPythonModel:
    def initialize(self, _args):
        self.kept = {}

    def execute(self, requests):
        result = None
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy().reshape(-1)[0].decode()
            scope = {
                "pb_utils": pb_utils,
                "np": np,
                "threading": threading,
                "time": time,
                "model": self,
                "requests": requests,
                "request": request,
                "sender": request.get_response_sender(),
                "answer": answer,
                "error": error,
                "FINAL": FINAL,
            }
            exec(code, scope)
            result = scope.get("result", result)
            scope.clear()
        return result
