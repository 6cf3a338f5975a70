"""Runs the runner of the backend `dali` in this process with instances on a GPU, without a GPU.

First DALI itself reports that there is no GPU. Then a simulated pipeline records what it is given to deserialize, runs it
on the CPU, and returns its outputs as GPU tensors, which can only be read after they are copied.
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "packages", "server", "python"))

import numpy as np
import triton_python_backend_utils as pb_utils
from galatea_frameworks.dali import program
from galatea_frameworks.dali.definition import CPU_ONLY, Definition
from galatea_frameworks.dali.program import TritonPythonModel
from galatea_worker import current_worker
from galatea_worker.failures import ModelError
from nvidia.dali import fn, pipeline_def, types

CONFIG = {
    "max_batch_size": 2,
    "input": [{"name": "value", "data_type": "TYPE_UINT8", "dims": [-1, -1, 3]}],
    "output": [{"name": "doubled", "data_type": "TYPE_UINT8", "dims": [-1, -1, 3]}],
}
DEVICE = 8
real = program.Pipeline
given = []


class OnGpu:
    def __init__(self, value):
        self._value = value

    def as_cpu(self):
        return self._value


class Twin:
    def __init__(self, pipeline):
        self._pipeline = pipeline

    @classmethod
    def deserialize(cls, serialized, **more):
        definition = Definition(serialized)
        given.append(
            {
                "device": definition._message.number(DEVICE, CPU_ONLY),
                "operators": [[one.name, one.device] for one in definition.operators],
            }
        )
        definition.put_on_cpu()
        return cls(real.deserialize(definition.encode(), **more))

    def feed_input(self, name, samples):
        self._pipeline.feed_input(name, samples)

    def run(self):
        return [OnGpu(one) for one in self._pipeline.run()]


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def doubled():
    value = fn.external_source(name="value", dtype=types.UINT8, ndim=3, layout="HWC")
    return fn.cast(value.gpu() * types.Constant(2, dtype=types.UINT8), dtype=types.UINT8)


@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def blurred():
    value = fn.external_source(device="gpu", name="value", dtype=types.UINT8, ndim=3, layout="HWC")
    return fn.experimental.median_blur(value, window_size=3)


def opened(directory, kind, number):
    model = TritonPythonModel()
    model.initialize(
        {
            "model_name": "m",
            "model_config": json.dumps(CONFIG),
            "model_repository": directory,
            "model_version": "1",
            "model_instance_name": "m_0",
            "model_instance_kind": kind,
            "model_instance_device_id": str(number),
        }
    )
    return model


def refusal(directory, kind):
    try:
        opened(directory, kind, 0)
    except ModelError as error:
        return str(error)
    raise AssertionError("it was opened")


class Request:
    def __init__(self, value):
        self._value = value

    def inputs(self):
        return [pb_utils.Tensor("value", self._value)]


def answer(model):
    requests = [Request(np.full((1, 2, 2, 3), number, np.uint8)) for number in (3, 4)]
    responses = model.execute(requests)
    return [one.output_tensors()[0].as_numpy().max().item() for one in responses]


def write(directory, made):
    os.makedirs(os.path.join(directory, "1"))
    with open(os.path.join(directory, "1", "model.dali"), "wb") as file:
        file.write(made.serialize())
    return directory


def main():
    current_worker.backend_config = dict
    with tempfile.TemporaryDirectory() as directory:
        on_both = write(os.path.join(directory, "doubled"), doubled())
        on_gpu_only = write(os.path.join(directory, "blurred"), blurred())
        said = {"without": refusal(on_both, "GPU"), "gpu_only_on_cpu": refusal(on_gpu_only, "CPU")}
        program.Pipeline = Twin
        for kind, number in (("GPU", 1), ("CPU", 0)):
            given.clear()
            model = opened(on_both, kind, number)
            said[kind] = {"answer": answer(model), "given": given[0]}
        # Only DALI can run operators that need a GPU, and here it cannot.
        given.clear()
        try:
            opened(on_gpu_only, "GPU", 0)
        except ModelError:
            said["gpu_only"] = given[0]
        print(json.dumps(said))


main()
