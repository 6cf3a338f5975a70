"""Runs the runner of the backend `tensorflow` in this process with instances on GPUs, without a GPU.

TensorFlow sees two simulated GPUs. A session for one of them runs on the CPU, and the options with which it was
opened are compared.
"""

import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "packages", "server", "python"))
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import numpy as np
import tensorflow as tf
import triton_python_backend_utils as pb_utils
from galatea_frameworks.tensorflow import graphs
from galatea_frameworks.tensorflow.program import TritonPythonModel
from galatea_worker import current_worker, reading_only
from galatea_worker.failures import ModelError

opened = []
held = []
logged = []
backend_config = {}


def config(accelerators=()):
    return {
        "platform": "tensorflow_graphdef",
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}],
        "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [2]}],
        "optimization": {
            "execution_accelerators": {"gpu_execution_accelerator": [{"name": name} for name in accelerators]}
        },
    }


def write(directory):
    os.makedirs(os.path.join(directory, "1"))
    graph = tf.Graph()
    with graph.as_default(), graph.device("/device:GPU:5"):
        x = tf.compat.v1.placeholder(tf.float32, [2], name="x")
        tf.multiply(x, tf.constant(np.full((2,), 3, np.float32)), name="y")
    with open(os.path.join(directory, "1", "model.graphdef"), "wb") as file:
        file.write(graph.as_graph_def().SerializeToString())


def ask(directory, kind, number, accelerators=()):
    opened.clear()
    held.clear()
    model = TritonPythonModel()
    model.initialize(
        {
            "model_name": "m",
            "model_config": json.dumps(config(accelerators)),
            "model_repository": directory,
            "model_version": "1",
            "model_instance_name": "m_0",
            "model_instance_kind": kind,
            "model_instance_device_id": str(number),
        }
    )
    value = model.to_value(pb_utils.Tensor("x", np.array([1, 2], np.float32)), "x")

    class Request:
        @staticmethod
        def requested_output_names():
            return ["y"]

    ((column,),) = [list(one) for one in model.columns([value], None, [Request()])]
    (session,) = opened
    return {
        "answer": column.as_numpy().tolist(),
        "visible": session.gpu_options.visible_device_list,
        "grows": session.gpu_options.allow_growth,
        "fraction": session.gpu_options.per_process_gpu_memory_fraction,
        "gpus": session.device_count.get("GPU", -1),
        "mixed": session.graph_options.rewrite_options.auto_mixed_precision,
        "constants_stay": not held,
    }


def refusal(directory, number, accelerators=()):
    try:
        ask(directory, "GPU", number, accelerators)
    except ModelError as error:
        return str(error)
    raise AssertionError("it was opened")


def main():
    current_worker.log = lambda *said: logged.append(str(said))
    current_worker.backend_config = lambda: backend_config
    # This process continues after its first model.
    reading_only.enter = lambda directory: None
    session, constants = tf.compat.v1.Session, graphs.Constants
    graphs._v1.Session = lambda graph, config: opened.append(config) or session(graph=graph, config=config)
    graphs.Constants = lambda definition: held.append(definition) or constants(definition)
    with tempfile.TemporaryDirectory() as directory:
        directory = os.path.join(directory, "m")
        write(directory)
        said = {"without": refusal(directory, 0), "cpu": ask(directory, "CPU", 0)}
        tf.config.list_physical_devices = lambda kind: ["one", "another"] if kind == "GPU" else []
        said["third"] = refusal(directory, 2)
        said["second"] = ask(directory, "GPU", 1, ["auto_mixed_precision", "gpu_io"])
        said["tensorrt"] = refusal(directory, 0, ["tensorrt"])
        said["abacus"] = refusal(directory, 0, ["abacus"])
        backend_config["gpu-memory-fraction"] = "0.25"
        said["quarter"] = ask(directory, "GPU", 0)
        backend_config["gpu-memory-fraction"] = "much"
        said["much"] = refusal(directory, 0)
        said["logged"] = logged
        print(json.dumps(said))


main()
