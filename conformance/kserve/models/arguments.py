"""Gives back what initialize was told, without what differs from machine to machine."""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        told = {key: value for key, value in args.items() if key not in ("model_config", "model_repository")}
        told["repository_is_model_directory"] = os.path.exists(os.path.join(args["model_repository"], "1", "model.py"))
        told["types"] = sorted({type(value).__name__ for value in args.values()})
        told["config_name"] = json.loads(args["model_config"])["name"]
        told["file"] = os.path.relpath(__file__, args["model_repository"])
        told["constant"] = json.loads(args["model_config"])["parameters"]["constant"]["string_value"]
        self.text = json.dumps(told, sort_keys=True)

    def execute(self, requests):
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([self.text], dtype=object))]) for _ in requests
        ]
