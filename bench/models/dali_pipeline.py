"""A DALI pipeline inside a Python model, as users without Triton's DALI backend serve one: one run for each batch."""

import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        # The DALI of the other server: Triton's interpreter finds it after its own packages.
        sys.path.append(json.loads(args["model_config"])["parameters"]["PACKAGES"]["string_value"])
        from nvidia.dali import Pipeline

        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.dali")
        with open(path, "rb") as file:
            self.pipeline = Pipeline.deserialize(
                file.read(), prefetch_queue_depth=1, exec_pipelined=False, exec_async=False
            )

    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(one, "encoded").as_numpy() for one in requests]
        self.pipeline.feed_input("encoded", [sample for one in given for sample in one])
        (found,) = self.pipeline.run()
        # DALI reuses its output memory for the next run.
        parts = np.split(found.as_array().copy(), np.cumsum([len(one) for one in given])[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("pixels", one)]) for one in parts]
