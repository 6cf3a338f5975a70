"""The functions that SageMaker's inference toolkit calls: a linear model of the weights in model.json."""

import json
import os

import numpy as np


def model_fn(model_dir):
    with open(os.path.join(model_dir, "model.json")) as file:
        return json.load(file)


def input_fn(body, content_type):
    if content_type != "application/json":
        raise ValueError(f"unsupported content type: {content_type}")
    return np.asarray(json.loads(body), dtype=float)


def predict_fn(rows, model):
    return rows @ np.asarray(model["weights"]) + model["bias"]


def output_fn(prediction, accept):
    return json.dumps(prediction.tolist()), "application/json"
