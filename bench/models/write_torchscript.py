"""write_torchscript.py DIRECTORY COUNT PACKAGES: `galatea` and `oracle`, repositories of the same TorchScript modules.

`mlp_0`, `mlp_1` ... are small; `resnet` is ResNet-50 for pictures of 64 by 64.
"""

import os
import shutil
import sys

import torch
from torch import nn

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "examples", "resnet50"))
from resnet50 import ResNet50  # noqa: E402

CONFIG = """backend: "%s"
max_batch_size: 64
input { name: "INPUT__0" data_type: TYPE_FP32 dims: %s }
output { name: "OUTPUT__0" data_type: TYPE_FP32 dims: %s }
dynamic_batching { }
%s"""


def put(repository, name, backend, dims, more=""):
    directory = os.path.join(repository, name, "1")
    os.makedirs(directory)
    with open(os.path.join(repository, name, "config.pbtxt"), "w") as file:
        file.write(CONFIG % (backend, dims[0], dims[1], more))
    return directory


def main():
    directory, count, packages = sys.argv[1:]
    torch.manual_seed(1)
    small = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 8)).eval()
    with torch.no_grad():
        programs = {"small": (torch.jit.script(small), ([64], [8]))}
        programs["large"] = (
            torch.jit.trace(ResNet50().eval(), torch.zeros(1, 3, 64, 64)),
            ([3, 64, 64], [1000]),
        )
    names = {"mlp_%d" % index: "small" for index in range(int(count))}
    names["resnet"] = "large"
    environment = 'parameters { key: "PACKAGES" value { string_value: "%s" } }\n' % packages
    for name, kind in names.items():
        program, dims = programs[kind]
        ours = put(os.path.join(directory, "galatea"), name, "pytorch", dims)
        torch.jit.save(program, os.path.join(ours, "model.pt"))
        theirs = put(os.path.join(directory, "oracle"), name, "python", dims, environment)
        shutil.copy(os.path.join(ours, "model.pt"), theirs)
        shutil.copy(os.path.join(HERE, "torchscript.py"), os.path.join(theirs, "model.py"))


main()
