"""A script for a TorchScript module: raw FP32 numbers in, JSON out."""

import json
import os

import torch

PICTURE = 3 * 64 * 64


def model_fn(model_dir):
    return torch.jit.load(os.path.join(model_dir, "model.pt"), map_location="cpu")


def input_fn(data, content_type):
    numbers = torch.frombuffer(bytearray(data), dtype=torch.float32)
    return numbers.reshape((-1, 3, 64, 64) if len(numbers) % PICTURE == 0 else (-1, 64))


def predict_fn(data, model):
    with torch.inference_mode():
        return model(data)


def output_fn(prediction, accept):
    return json.dumps(prediction.tolist()), "application/json"
