"""One container of a pipeline: returns its words with its own name appended, and runs the commands in them for a
container of its name.
"""

import os
import time

import numpy as np
import triton_python_backend_utils as pb_utils

NAME = os.environ["NAME"]
MEETING = os.environ["FAULTS_MEETING"]


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        words = pb_utils.get_input_tensor_by_name(request, "WORDS").as_numpy().reshape(-1)[0].decode()
        text = "%s %s" % (words, NAME)
        for word in words.split(" "):
            name, _, does = word.partition(":")
            if name == NAME and does:
                text = getattr(self, does)(text)
        return pb_utils.InferenceResponse([pb_utils.Tensor("WORDS", np.array([text], object))])

    def fails(self, text):
        raise ValueError("%s fails on request" % NAME)

    def dies(self, text):
        os._exit(3)

    def grows(self, text):
        """Ten thousand times the received size."""
        return text * 10_000

    def explodes(self, text):
        """More than a container is sent."""
        return text + "x" * 7_000_000

    def waits(self, text):
        """Writes that it runs, and runs until the test creates the file `<name>.go`."""
        path = os.path.join(MEETING, NAME)
        with open(path + ".running", "w") as file:
            file.write(str(os.getpid()))
        while not os.path.exists(path + ".go"):
            time.sleep(0.005)
        return text
