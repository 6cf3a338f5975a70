"""Sends its one response itself, in the way that the number in KIND asks for."""

import threading

import numpy as np
import triton_python_backend_utils as pb_utils

FINAL = pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL


def response(value):
    return pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([value], np.int32))])


class TritonPythonModel:
    def execute(self, requests):
        (request,) = requests
        kind = int(pb_utils.get_input_tensor_by_name(request, "KIND").as_numpy()[0])
        sender = request.get_response_sender()
        if kind == 0:
            sender.send(response(10), FINAL)
            return None
        if kind == 1:
            sender.send(response(11), FINAL)
            return [None]
        if kind == 2:
            sender.send(response(12))
            sender.send(flags=FINAL)
            return None
        if kind == 3:
            return [response(13)]
        if kind == 4:
            sender.send(
                pb_utils.InferenceResponse(error=pb_utils.TritonError("sent", pb_utils.TritonError.UNAVAILABLE)), FINAL
            )
            return None
        if kind == 5:
            sender.send(response(15), FINAL)
            raise ValueError("raised after the response was sent")
        if kind == 6:
            numbers = np.array([16], np.int32)
            sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("OUT", numbers)]), FINAL)
            numbers[:] = 0
            return None
        if kind == 7:
            sender.send(response(17), 5)
        if kind == 8:
            sender.send()
        if kind == 9:
            sender.send(flags=FINAL)
        if kind == 10:
            threading.Timer(0.05, sender.send, (response(20), FINAL)).start()
            return None
        if kind == 11:
            sender.send(response(21), FINAL)
            sender.send(response(22), FINAL)
            return None
        return [response(int(sender.is_cancelled()))]
