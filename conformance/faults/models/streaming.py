"""Runs CODE for each request with its `sender`; CODE sends the responses."""

import os
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def answer(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([str(value)], dtype=object))])


def large(value, size):
    return pb_utils.InferenceResponse([pb_utils.Tensor("LARGE", np.full([size], value, np.int32))])


def leave(name, value):
    """Writes a file for the test."""
    path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name)
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(str(value))
    os.rename(path + ".part", path)


class TritonPythonModel:
    def initialize(self, _args):
        self.kept = {}

    def execute(self, requests):
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy().reshape(-1)[0].decode()
            scope = dict(
                globals(),
                threading=threading,
                time=time,
                model=self,
                request=request,
                sender=request.get_response_sender(),
            )
            exec(code, scope)
