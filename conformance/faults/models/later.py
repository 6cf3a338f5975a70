"""A step after a stream: returns TEXT or NUMBERS; `pid` writes its process id and waits, `wait` delays the response."""

import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils

DIRECTORY = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        numbers = pb_utils.get_input_tensor_by_name(request, "NUMBERS")
        if numbers is not None:
            return pb_utils.InferenceResponse([pb_utils.Tensor("SAME", numbers.as_numpy())])
        text = pb_utils.get_input_tensor_by_name(request, "TEXT").as_numpy()[0].decode()
        if text == "pid":
            path = os.path.join(DIRECTORY, "pid")
            with open(path + ".part", "w", encoding="utf-8") as file:
                file.write(str(os.getpid()))
            os.rename(path + ".part", path)
            time.sleep(60)
        if text == "wait":
            time.sleep(0.3)
        return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text.upper()], dtype=object))])
