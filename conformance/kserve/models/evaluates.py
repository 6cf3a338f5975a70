"""Gives back the repr of the expression in CODE, or what it raised; a statement list, which begins with `run:`, leaves its answer in `out`."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        responses = []
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode()
            scope = {"pb_utils": pb_utils, "np": np, "request": request, "model": self, "out": None}
            if code.startswith("run:"):
                exec(code[4:], scope)
                out = scope["out"]
            else:
                try:
                    out = eval(code, scope)
                except Exception as error:
                    out = "%s: %s" % (type(error).__name__, error)
            if not isinstance(out, pb_utils.InferenceResponse):
                out = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([repr(out)], dtype=object))])
            responses.append(out)
        return responses
