"""An asynchronous, decoupled model: CODE is a number of answers; `wait` answers when `go` has come."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils


def answer(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([str(value)], dtype=object))])


class TritonPythonModel:
    def initialize(self, _args):
        self.gone = False

    async def execute(self, requests):
        for request in requests:
            code = pb_utils.get_input_tensor_by_name(request, "CODE").as_numpy()[0].decode()
            sender = request.get_response_sender()
            if code == "wait":
                while not self.gone:
                    await asyncio.sleep(0.01)
                sender.send(answer("waited"))
            elif code == "go":
                sender.send(answer("went"))
                self.gone = True
            else:
                for index in range(int(code)):
                    await asyncio.sleep(0.001)
                    sender.send(answer(index))
            sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        return
