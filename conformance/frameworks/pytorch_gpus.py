"""Runs the runner of the backend `pytorch` in this process with instances on GPUs, without a GPU.

The CPU simulates the GPUs: PyTorch accepts any index ("cpu:1"), and tensors that were not moved there are detected.
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "packages", "server", "python"))

import numpy as np
import torch
import triton_python_backend_utils as pb_utils
from galatea_frameworks.pytorch import devices
from galatea_frameworks.pytorch.program import TritonPythonModel
from galatea_worker import current_worker
from galatea_worker.failures import ModelError

CONFIG = {
    "input": [{"name": "A", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "B", "data_type": "TYPE_FP32", "dims": [2]}],
}
seen = []


class Scaled(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.full((2048,), 3.0))

    def forward(self, a):
        return a * self.factor[: a.shape[0]]


def write(directory):
    os.makedirs(os.path.join(directory, "1"))
    torch.jit.script(Scaled()).save(os.path.join(directory, "1", "model.pt"))
    exported = torch.export.export(Scaled(), (torch.ones(2),))
    torch.export.save(exported, os.path.join(directory, "1", "exported.pt2"))
    torch.save(Scaled().state_dict(), os.path.join(directory, "1", "eager.pt"))
    with open(os.path.join(directory, "1", "eager.py"), "w") as file:
        file.write(
            "import torch\nclass Scaled(torch.nn.Module):\n"
            "    def __init__(self):\n        super().__init__()\n        self.factor = torch.nn.Parameter(torch.ones(2048))\n"
            "    def forward(self, a):\n        return a * self.factor[: a.shape[0]]\n"
        )


def ask(directory, number, filename):
    model = TritonPythonModel()
    config = dict(CONFIG, default_model_filename=filename)
    if filename.endswith(".py"):
        config["runtime"] = "model.py"
    model.initialize(
        {
            "model_name": "m",
            "model_config": json.dumps(config),
            "model_repository": directory,
            "model_version": "1",
            "model_instance_name": "m_0",
            "model_instance_kind": "GPU",
            "model_instance_device_id": str(number),
        }
    )
    value = model.to_value(pb_utils.Tensor("A", np.array([1, 2], np.float32)), "A")
    assert isinstance(value, torch.Tensor)
    (column,) = model.columns([value], None, [None])
    return [one.as_numpy().tolist() for one in column]


def main():
    current_worker.log = lambda *said: None
    with tempfile.TemporaryDirectory() as directory:
        write(os.path.join(directory, "m"))
        directory = os.path.join(directory, "m")
        said = {}
        try:
            ask(directory, 0, "model.pt")
        except ModelError as error:
            said["without"] = str(error)
        torch.cuda.is_available = lambda: True
        torch.cuda.device_count = lambda: 2
        devices._GPU = "cpu:%d"
        moved = torch.Tensor.to
        torch.Tensor.to = lambda self, *places, **more: seen.append(str(places[0])) or moved(self, *places, **more)
        for filename in ("model.pt", "exported.pt2", "eager.py"):
            seen.clear()
            said[filename] = {"answer": ask(directory, 1, filename), "input_is_moved": "cpu:1" in seen}
        try:
            ask(directory, 2, "model.pt")
        except ModelError as error:
            said["third"] = str(error)
        print(json.dumps(said))


main()
