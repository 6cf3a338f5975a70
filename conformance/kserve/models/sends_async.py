"""Its `execute` is a coroutine; what KIND asks for is sent by a task that goes on after it has returned."""

import asyncio

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


class TritonPythonModel:
    def initialize(self, args):
        self.tasks = set()

    async def execute(self, requests):
        for request in requests:
            kind = int(pb_utils.get_input_tensor_by_name(request, "KIND").as_numpy()[0])
            sender = request.get_response_sender() if kind == 1 else None
            task = asyncio.get_running_loop().create_task(self.send(request, kind, sender))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        return [None] * len(requests) if kind == 2 else None

    async def send(self, request, kind, sender):
        await asyncio.sleep(0.05)
        if sender is None:
            sender = request.get_response_sender()
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([20 + kind], np.int32))]), FINAL)
