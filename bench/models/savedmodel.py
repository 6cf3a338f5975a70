"""A SavedModel inside a Python model, as users serve TensorFlow with Triton's Python backend: one call for each
batch.
"""

import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        # The TensorFlow of the other server: Triton's interpreter finds it after its own packages.
        sys.path.append(json.loads(args["model_config"])["parameters"]["PACKAGES"]["string_value"])
        import tensorflow as tf

        self.tf = tf
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.savedmodel")
        self.module = tf.saved_model.load(path)
        self.function = self.module.signatures["serving_default"]

    def execute(self, requests):
        given = [pb_utils.get_input_tensor_by_name(one, "x").as_numpy() for one in requests]
        joined = given[0] if len(given) == 1 else np.concatenate(given)
        found = self.function(x=self.tf.constant(joined))["y"].numpy()
        parts = np.split(found, np.cumsum([len(one) for one in given])[:-1])
        return [pb_utils.InferenceResponse([pb_utils.Tensor("y", one)]) for one in parts]
